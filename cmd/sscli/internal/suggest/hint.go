package suggest

import (
	"slices"
	"strings"

	"github.com/sscli/sscli/format"
)

// A Hint is what the user can try next: steps, each of which can be followed by itself. Nil means that
// there is nothing to suggest.
type Hint []Step

// A Step is a sentence of words and commands.
type Step []Part

// A Part of a step is text, or a command. A command whose first word is a flag is not whole: its words
// belong to the command that failed.
type Part struct {
	Text    string // text to read; empty = a command
	Argv    []Word // the words to type
	Without []Word // the words to omit from the command that failed
	inside  bool   // for sscli's shell, not for sh
}

// A Word of a command is text, or a place or a value between two texts.
type Word struct {
	Text  string
	Place Place  // the type of the missing value; empty = none is missing
	Value string // may need quotes
	After string
}

// Typed returns the word without quotes.
func (w Word) Typed() string { return w.Text + string(w.Place) + w.Value + w.After }

// A Place is where a value belongs. The constant is what the user sees while the value is unknown.
type Place string

// The places, by the type of the value.
const (
	Key       Place = "KEY"
	Keys      Place = "KEY..." // several values
	NewKey    Place = "NEW"    // another key or context
	Name      Place = "NAME"   // a lock or a context
	OtherLock Place = "LOCK"   // a lock that only the user knows
	Token     Place = "TOKEN"
	Value     Place = "VALUE"
	Pattern   Place = "PATTERN"
	Optional  Place = "[PATTERN]" // a pattern; if there is none, the word is omitted
	Prefix    Place = "PREFIX"
	Duration  Place = "DURATION"
	File      Place = "FILE"
	URL       Place = "URL"
	Address   Place = "HOST:PORT"
	WebSocket Place = "ws://HOST:PORT"
	Proxy     Place = "http://USER:PASSWORD@HOST:PORT"
	Words     Place = "WORDS..."
	HLC       Place = "HLC"
	ID        Place = "ID"
	Form      Place = "FORM"
	Flags     Place = "FLAG"
	Cmd       Place = "CMD..." // a command of the user
	Again     Place = "…"      // after the word sscli, the rest of the command that failed; elsewhere, other operands
)

// places has the longest names first, because HOST:PORT is a part of others.
var places = [...]Place{Proxy, WebSocket, Address, Keys, Optional, Cmd, Words, Key, NewKey, Name, OtherLock, Token, Value, Pattern, Prefix, Duration, File, URL, HLC, ID, Form, Flags, Again}

// Try returns the hint that a text describes. The text has a command between backticks and a semicolon
// between steps:
//
//	suggest.Try("`sscli lock status NAME` shows the holder; use a longer `--wait`")
//
// Between backticks, the names of places are places, and a word with spaces is in single quotes. In a command of flags alone, "with" joins
// flags, and the words after "in place of", or after "omit", are words to omit. Values do not belong into
// the text: [Hint.Fill] puts them into places.
func Try(text string) Hint {
	var hint Hint
	for sentence := range strings.SplitSeq(text, "; ") {
		var step Step
		for i, part := range strings.Split(sentence, "`") {
			if i%2 == 1 {
				step = append(step, parseCommand(part))
			} else if part != "" {
				step = append(step, Part{Text: part})
			}
		}
		if step != nil {
			hint = append(hint, step)
		}
	}
	return hint
}

func parseCommand(text string) (p Part) {
	if rest, ok := strings.CutPrefix(text, "omit "); ok {
		return Part{Without: parseWords(rest)}
	}
	if text[0] == '-' {
		typed, omitted, _ := strings.Cut(text, " in place of ")
		return Part{Argv: parseWords(strings.ReplaceAll(typed, " with ", " ")), Without: parseWords(omitted)}
	}
	return Part{Argv: parseWords(text)}
}

func parseWords(text string) (words []Word) {
	for text != "" {
		word := ""
		if quoted, ok := strings.CutPrefix(text, "'"); ok {
			word, text, _ = strings.Cut(quoted, "'")
			words = append(words, Word{Value: word})
			text = strings.TrimPrefix(text, " ")
			continue
		}
		word, text, _ = strings.Cut(text, " ")
		words = append(words, parseWord(word))
	}
	return words
}

func parseWord(text string) Word {
	for _, p := range places {
		before, after, ok := strings.Cut(text, string(p))
		if ok && strings.TrimRight(before, "_ABCDEFGHIJKLMNOPQRSTUVWXYZ") == before {
			return Word{Text: before, Place: p, After: after}
		}
	}
	return Word{Text: text}
}

// Say returns a hint of one step, which is plain text.
func Say(text string) Hint { return Hint{{{Text: text}}} }

// Then returns the hint with text after its last step.
func (h Hint) Then(text string) Hint {
	last := len(h) - 1
	return append(slices.Clone(h[:last]), append(slices.Clone(h[last]), Part{Text: text}))
}

// Run returns a hint with one command. Its words are values without places.
func Run(argv ...string) Hint {
	p := Part{Argv: make([]Word, len(argv))}
	for i, arg := range argv {
		p.Argv[i] = Word{Value: arg}
	}
	return Hint{{p}}
}

// Operand returns argv with an operand, after -- if the operand would be taken for a flag.
func Operand(argv []string, operand string) []string {
	if strings.HasPrefix(operand, "-") {
		argv = append(argv, "--")
	}
	return append(argv, operand)
}

// Fill returns the hint with values in each place of this type. Only [Keys] and [Words] take more than
// one value. The place stays if there is no value, and if a value would be taken for a flag or would make
// the hint unreadable.
func (h Hint) Fill(place Place, values ...string) Hint {
	const maxValue = 1000
	if len(values) == 0 || slices.ContainsFunc(values, func(v string) bool { return v == "" || len(v) > maxValue }) {
		return h
	}
	return h.each(func(p Part) Part {
		p.Argv, p.Without = fill(p.Argv, place, values), fill(p.Without, place, values)
		return p
	})
}

func fill(words []Word, place Place, values []string) (filled []Word) {
	for _, w := range words {
		if w.Place != place || w.Text == "" && place != Words && slices.ContainsFunc(values, func(v string) bool { return v[0] == '-' }) {
			filled = append(filled, w)
			continue
		}
		for _, v := range values {
			filled = append(filled, Word{Text: w.Text, Value: v, After: w.After})
		}
	}
	return filled
}

// each returns the hint with a function applied to all parts.
func (h Hint) each(change func(Part) Part) Hint {
	changed := make(Hint, len(h))
	for i, step := range h {
		for _, p := range step {
			changed[i] = append(changed[i], change(p))
		}
	}
	return changed
}

// Possible returns the steps that a command allows. rename returns what the command calls a flag, or ""
// if it does not have the flag. A step with a flag that the command does not have is left out, unless the
// step also has a whole command.
func (h Hint) Possible(rename func(flag string) string) (possible Hint) {
	for _, step := range h {
		whole := slices.ContainsFunc(step, Part.isWhole)
		missing := false
		renamed := Hint{step}.each(func(p Part) Part {
			if p.IsFlags() {
				for _, words := range []*[]Word{&p.Argv, &p.Without} {
					*words = slices.Clone(*words)
					for i, w := range *words {
						if name, isFlag := strings.CutPrefix(w.Text, "--"); isFlag {
							(*words)[i].Text = "--" + rename(name)
							missing = missing || (*words)[i].Text == "--"
						}
					}
				}
			}
			return p
		})
		switch {
		case !missing:
			possible = append(possible, renamed...)
		case whole:
			possible = append(possible, step)
		}
	}
	return possible
}

// IsFlags reports whether a part is about the command that failed: flags to add, or words to omit.
func (p Part) IsFlags() bool {
	return len(p.Without) > 0 || len(p.Argv) > 0 && strings.HasPrefix(p.Argv[0].Text, "-")
}

// isWhole reports whether a part is a command of sscli to run.
func (p Part) isWhole() bool { return p.inside || len(p.Argv) > 0 && p.Argv[0].Typed() == "sscli" }

// Inside returns the hint for a user of sscli's shell, who does not type the word sscli. Commands that
// cannot run in the shell keep it.
func (h Hint) Inside() Hint {
	return h.each(func(p Part) Part {
		if len(p.Argv) < 2 || p.Argv[0].Typed() != "sscli" {
			return p
		}
		rest, last := p.Argv[1:], len(p.Argv)-2
		switch first := rest[0].Typed(); {
		case rest[last].Typed() == "--help":
			p.Argv = append([]Word{{Text: "help"}}, rest[:last]...)
		case rest[0].Place == "" && first[0] != '-' && first != "serve" && first != "shell" && first != "forward":
			p.Argv = rest
		default:
			return p
		}
		p.inside = true
		return p
	})
}

// String returns the hint as one line, with the quotes that sh requires. After [Hint.Inside], words that
// sscli's shell would read differently have its quotes.
func (h Hint) String() string { return h.Steps().String() }

// Steps returns the texts of the hint's steps.
func (h Hint) Steps() (steps format.Hint) {
	for _, step := range h {
		var s format.Step
		for _, p := range step {
			s.Text += p.String()
			s.Command = s.Command || p.isWhole()
		}
		steps = append(steps, s)
	}
	return steps
}

// String returns the text, or the command as the user types it.
func (p Part) String() string {
	var b strings.Builder
	b.WriteString(p.Text)
	write := func(words []Word) {
		for i, w := range words {
			if w.Place == Optional {
				continue
			}
			if i > 0 && p.IsFlags() && strings.HasPrefix(w.Text, "-") {
				b.WriteString(" with")
			}
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(w.quoted(p.inside))
		}
	}
	write(p.Argv)
	if len(p.Without) > 0 {
		before := "omit "
		if len(p.Argv) > 0 {
			before = " in place of "
		}
		b.WriteString(before)
		write(p.Without)
	}
	return b.String()
}

// quoted returns the word with the quotes that it needs. What the code wrote into a word is plain,
// except for a wildcard after a place.
func (w Word) quoted(inside bool) string {
	text, quoted := w.Typed(), format.ShWord(w.Typed())
	switch {
	case text != "" && format.ShWord("x"+w.Value) == "x"+w.Value && !strings.HasPrefix(w.After, "*"):
		return text
	case inside && (strings.Contains(quoted, `\'`) || quoted[0] == '$'):
		return format.Word(text)
	}
	return quoted
}
