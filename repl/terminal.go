package repl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/chzyer/readline"

	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/keyboard"
)

// ErrInterrupted is returned by ReadEntry when the user cancels the entry with Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// TerminalOptions are the options of a [Terminal].
type TerminalOptions struct {
	In, Out  *os.File  // the terminal
	History  *History  // nil = none
	Complete Completer // nil = Tab does nothing
}

// A Terminal reads entries from a terminal and lets the user edit them. An entry has one
// or more lines: Enter continues on the next line while a quote is open, and a paste of
// several lines is inserted as one entry.
//
// The line is a RuneBuffer of chzyer/readline, which moves the cursor by words, and cuts and yanks text. It sees no
// terminal, so it does not draw. The package comment says why readline does no more.
//
// Only one goroutine may call ReadEntry and Close; any goroutine may call the other methods
// at any time.
type Terminal struct {
	o       TerminalOptions
	in      io.Reader
	cooked  *readline.State // the terminal's state before NewTerminal
	stop    func()          // stops watching the terminal's size
	watched sync.WaitGroup  // waits for the goroutine that watches the size

	decoder keyboard.Decoder
	keys    []keyboard.Key // the keys that arrived and are not handled yet
	reading reading[[]byte]

	mu      sync.Mutex // guards the fields below
	screen  screen
	prompt  string
	line    *readline.RuneBuffer // encoded, see edited
	editing bool                 // a line is being edited and drawn
	entered bool                 // Enter ended the last entry, and the next has not begun
	found   search

	recalled int            // index of the entry of the history that is edited; len(entries) = a new one
	drafts   map[int][]rune // entries of the history that were edited or left, by index
}

// search is the state of a history search (Ctrl-R).
type search struct {
	on     bool
	query  []rune
	at     int    // index of the found entry; len(entries) before the first is found
	saved  []rune // the line before the search
	missed bool   // no entry contains the query
}

// NewTerminal returns a Terminal, which reads from o.In until Close.
func NewTerminal(o TerminalOptions) (*Terminal, error) {
	if o.History == nil {
		o.History = &History{}
	}
	cooked, err := readline.GetState(int(o.In.Fd()))
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	notDrawn := &readline.Config{FuncIsTerminal: func() bool { return false }}
	t := &Terminal{o: o, in: keyboardOf(o.In), cooked: cooked, line: readline.NewRuneBuffer(nil, "", notDrawn, 0)}
	t.screen = screen{w: screenWriter(o.Out), size: t.size}
	resized, stop := watchTerminal()
	t.stop = stop
	t.watched.Go(func() {
		for range resized {
			t.resized()
		}
	})
	return t, nil
}

// Close restores the terminal's state. If ReadEntry was cancelled, a read from the terminal may last until the process
// ends.
func (t *Terminal) Close() error {
	t.stop()
	t.watched.Wait()
	return t.restore()
}

func (t *Terminal) raw() error {
	_, err := readline.MakeRaw(int(t.o.In.Fd()))
	return err
}

func (t *Terminal) restore() error { return readline.Restore(int(t.o.In.Fd()), t.cooked) }

func (t *Terminal) size() (width, height int) {
	width, height, err := readline.GetSize(int(t.o.Out.Fd()))
	if err != nil || width <= 0 {
		return 80, 24
	}
	return width, height
}

// ReadEntry shows a prompt and reads an entry. The error is [ErrInterrupted] after Ctrl-C,
// io.EOF after Ctrl-D on an empty line or when the terminal is gone, and the cause of ctx if ctx ends.
func (t *Terminal) ReadEntry(ctx context.Context, prompt string) (string, error) {
	_ = t.raw() // after an error, keys arrive line by line
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prompt, t.editing, t.entered = clean(prompt), true, false
	t.line.Set(nil)
	t.recalled, t.drafts = len(t.o.History.entries), make(map[int][]rune)
	t.screen.write([]byte(pasteOn))
	for {
		if len(t.keys) == 0 {
			t.show()
		}
		key, err := t.nextKey(ctx)
		if err == nil {
			t.entered, err = t.press(key)
		}
		switch {
		case errors.Is(err, ErrInterrupted):
			t.leave("^C")
			return "", err
		case err != nil:
			t.leave("")
			return "", err
		case t.entered:
			t.leave("")
			return textOf(t.line.Runes()), nil
		}
	}
}

// nextKey returns the next key. It unlocks t.mu while it waits for the terminal.
func (t *Terminal) nextKey(ctx context.Context) (keyboard.Key, error) {
	for len(t.keys) == 0 {
		t.mu.Unlock()
		b, err := t.reading.next(ctx, nil, func() []byte {
			b := make([]byte, 4096)
			n, _ := t.in.Read(b)
			return b[:n]
		})
		t.mu.Lock()
		if err != nil || len(b) == 0 {
			return 0, cmp.Or(err, io.EOF)
		}
		t.keys = t.decoder.Decode(b)
	}
	key := t.keys[0]
	t.keys = t.keys[1:]
	return key, nil
}

// clean escapes the unprintable characters of a prompt, but not its backslashes.
func clean(prompt string) string { return strings.ReplaceAll(format.Escape(prompt), `\\`, `\`) }

// leave ends the editing of the line, writes mark after it and moves to the next row. Only then is the terminal told that
// no line is edited, so that a Ctrl-C that comes after that is a signal. The caller holds t.mu.
func (t *Terminal) leave(mark string) {
	t.editing, t.found.on = false, false
	t.screen.leave(t.prompt, t.line.Runes(), mark)
	_ = t.restore() // it fails if the terminal is gone, which the next read reports
	t.screen.write([]byte(pasteOff))
}

// Interrupt reports whether an interrupt signal is for the entry that is being read. After Enter, the
// signal is for the command. While an entry is edited, Ctrl-C arrives as a key and not as a signal, so
// Interrupt has nothing else to do.
func (t *Terminal) Interrupt() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.entered
}

// SetPrompt changes the prompt, even while a line is being edited.
func (t *Terminal) SetPrompt(prompt string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prompt = clean(prompt)
	t.show()
}

// Above calls write, which prints lines. If a line is being edited, the printed lines appear above it.
func (t *Terminal) Above(write func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.editing {
		write()
		return
	}
	t.screen.remove()
	write()
	t.show()
}

// show draws the line if one is being edited. The caller holds t.mu.
func (t *Terminal) show() {
	if !t.editing {
		return
	}
	line := t.line.Runes()
	if !t.found.on {
		t.screen.draw(t.prompt, line, t.line.Pos())
		return
	}
	word := "search"
	if t.found.missed {
		word = "not found"
	}
	prompt := fmt.Sprintf("(%s %s) ", word, format.Quote(textOf(t.found.query)))
	t.screen.draw(prompt, line, len(line))
}

// resized redraws the line, unless it was already redrawn at the new size.
func (t *Terminal) resized() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if width, height := t.size(); width != t.screen.width || height != t.screen.height {
		t.show()
	}
}

// press handles a key. enters is set if the key ends the entry; otherwise, the error ends it. The caller holds t.mu.
func (t *Terminal) press(key keyboard.Key) (enters bool, err error) {
	if t.found.on && t.searchKey(key) {
		return false, nil
	}
	line := t.line
	switch key {
	case keyboard.Enter:
		if !incomplete(textOf(line.Runes())) {
			return true, nil
		}
		line.WriteRunes(edited("\n"))
	case keyboard.Alt + keyboard.Enter:
		line.WriteRunes(edited("\n"))
	case keyboard.Interrupt:
		return false, ErrInterrupted
	case readline.CharDelete: // Ctrl-D
		if line.Len() == 0 {
			return false, io.EOF
		}
		line.Delete()
	case keyboard.Delete:
		if line.Pos() < line.Len() {
			line.MoveForward()
			line.Backspace() // unlike Delete, it keeps the text that was cut
		}
	case keyboard.Backspace:
		line.Backspace()
	case readline.CharLineStart, keyboard.Home:
		line.MoveToLineStart()
	case readline.CharLineEnd, keyboard.End:
		line.MoveToLineEnd()
	case readline.CharBackward, keyboard.Left:
		line.MoveBackward()
	case readline.CharForward, keyboard.Right:
		line.MoveForward()
	case keyboard.WordLeft, keyboard.Alt + 'b':
		line.MoveToPrevWord()
	case keyboard.WordRight, keyboard.Alt + 'f':
		line.MoveToNextWord()
	case readline.CharPrev, keyboard.Up:
		t.recall(t.recalled - 1)
	case readline.CharNext, keyboard.Down:
		t.recall(t.recalled + 1)
	case readline.CharBckSearch:
		t.found = search{on: true, at: len(t.o.History.entries), saved: line.Runes()}
	case keyboard.Paste:
		line.WriteRunes(edited(t.decoder.Paste()))
	case readline.CharTab:
		t.complete()
	case readline.CharCtrlL:
		t.screen.clear()
	case readline.CharCtrlZ:
		t.suspend()
	default:
		t.change(key)
	}
	return false, nil
}

// change handles a key that cuts, moves or inserts text.
func (t *Terminal) change(key keyboard.Key) {
	line := t.line
	switch key {
	case readline.CharKill:
		line.Kill()
	case readline.CharCtrlU:
		line.KillFront()
	case readline.CharCtrlW, keyboard.Alt + keyboard.Backspace:
		if t.inFirstWord() {
			line.KillFront() // BackEscapeWord would delete the rest of the line too
		} else {
			line.BackEscapeWord()
		}
	case keyboard.DeleteWord, keyboard.Alt + 'd':
		line.DeleteWord()
	case readline.CharCtrlY:
		line.Yank()
	case readline.CharTranspose:
		if line.Len() > 1 { // otherwise, Transpose would break the buffer
			line.Transpose()
		}
	default:
		line.WriteRunes(typed(key))
	}
}

// recall edits another entry of the history. Edited entries stay as they are until the entry ends.
func (t *Terminal) recall(at int) {
	entries := t.o.History.entries
	if at < 0 || at > len(entries) {
		return
	}
	t.drafts[t.recalled] = t.line.Runes()
	t.recalled = at
	line, ok := t.drafts[at]
	if !ok {
		line = edited(entries[at])
	}
	t.line.Set(line)
}

// inFirstWord reports whether there is at most one word before the cursor. The caller
// holds t.mu.
func (t *Terminal) inFirstWord() bool {
	line := t.line.Runes()
	for i := 1; i < t.line.Pos(); i++ {
		if !readline.IsWordBreak(line[i]) && readline.IsWordBreak(line[i-1]) {
			return false
		}
	}
	return true
}

// incomplete reports whether a quote is open at the end of the text.
func incomplete(text string) bool {
	r := NewReader(strings.NewReader(text))
	r.Joins = true
	for {
		_, err := r.Next()
		if errors.Is(err, ErrIncomplete) {
			return true
		}
		if _, bad := errors.AsType[*LineError](err); err != nil && !bad {
			return false
		}
	}
}

// complete completes the word under the cursor. The caller holds t.mu; complete unlocks t.mu while it
// looks for candidates.
func (t *Terminal) complete() {
	if t.o.Complete == nil {
		return
	}
	line, cursor := t.line.Runes(), t.line.Pos()
	t.mu.Unlock()
	before := textOf(line[:cursor])
	start, text, candidates := complete(before, t.o.Complete)
	t.mu.Lock()
	if len(candidates) > 0 {
		t.screen.leave(t.prompt, line, "")
		t.screen.write([]byte(listing(candidates, t.screen.width)))
	}
	head := edited(before[:start] + text)
	t.line.SetWithIdx(len(head), append(head, line[cursor:]...))
}

// searchKey handles a key during a search. If it returns false, the key ends the search and has its usual meaning.
func (t *Terminal) searchKey(key keyboard.Key) bool {
	s := &t.found
	text := typed(key)
	switch {
	case key == readline.CharBckSearch:
		t.find(s.at - 1)
	case key == keyboard.Backspace:
		s.query = s.query[:max(len(s.query)-1, 0)]
		t.find(len(t.o.History.entries) - 1)
	case key == keyboard.Interrupt || key == readline.CharBell:
		s.on = false
		t.line.Set(s.saved)
	case text != nil:
		s.query = append(s.query, text...)
		t.find(min(s.at, len(t.o.History.entries)-1))
	default:
		s.on = false
		return false
	}
	return true
}

// find searches the history backwards for the query. from is the index of the first entry to search.
func (t *Terminal) find(from int) {
	query := textOf(t.found.query)
	t.found.missed = false
	if query == "" {
		t.line.Set(t.found.saved)
		t.found.at = len(t.o.History.entries)
		return
	}
	for i := from; i >= 0; i-- {
		if e := t.o.History.entries[i]; strings.Contains(e, query) {
			t.found.at = i
			t.line.Set(edited(e))
			return
		}
	}
	t.found.missed = true
}
