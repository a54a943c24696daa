package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/chzyer/readline"

	"github.com/sscli/sscli/format"
)

// ErrInterrupted is what ReadEntry returns when the user drops what was typed.
var ErrInterrupted = errors.New("interrupted")

// TerminalOptions are those of a [Terminal].
type TerminalOptions struct {
	In, Out  *os.File  // a terminal
	History  *History  // may be nil
	Complete Completer // may be nil
}

// A Terminal reads entries from a user who can edit them. An entry is a line, or
// several: Enter goes on in the next line while a quote is open, and a paste of
// several lines is inserted as it is.
//
// chzyer/readline reads the keys, edits, and walks through the history. What it
// does not do is done here: it draws without a notion of line ends, of wide
// characters beyond a few scripts, and of a terminal that changes its size; it
// takes the lines of a paste for entries, and the end of the terminal for Enter. So
// it is not let near the terminal's output, and what the terminal sends passes
// through [keys] first.
type Terminal struct {
	o     TerminalOptions
	rl    *readline.Instance
	stdin *readline.CancelableStdin
	keys  *keys

	cooked  *readline.State // of the terminal as it was
	pending chan entry      // that ReadEntry no longer waits for
	stop    func()          // ends the goroutine that watches the terminal's size
	watched sync.WaitGroup

	mu      sync.Mutex // guards what is below
	screen  screen
	prompt  string
	line    []rune
	cursor  int
	reading bool // a line is being edited, and is on the screen
	entered bool // behind Enter
	found   search
}

// search is a search through the history, by Ctrl-R.
type search struct {
	on    bool
	query []rune
	at    int    // index of the entry that was found; len(entries) before there is one
	saved []rune // what was typed before

	missed bool // there is no entry with the query
}

type entry struct {
	line []rune
	err  error
}

// NewTerminal takes the terminal for reading entries; Close gives it back.
func NewTerminal(o TerminalOptions) (*Terminal, error) {
	if o.History == nil {
		o.History = &History{}
	}
	t := &Terminal{o: o}
	cooked, err := readline.GetState(int(o.In.Fd()))
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	t.cooked = cooked
	t.screen.w = screenWriter(o.Out)
	t.screen.size = t.size
	t.stdin = readline.NewCancelableStdin(keyboard(o.In))
	t.keys = newKeys(t.stdin)
	t.rl, err = readline.NewEx(&readline.Config{
		Stdin:  closing{t.keys, t.stdin},
		Stdout: io.Discard,
		Stderr: io.Discard,
		// Not interactive means that it does not draw, and without a width it shows
		// no candidates and does not search.
		FuncIsTerminal:         func() bool { return false },
		FuncGetWidth:           func() int { return 0 },
		FuncOnWidthChanged:     func(func()) {},
		FuncMakeRaw:            t.raw,
		FuncExitRaw:            t.restore,
		DisableAutoSaveHistory: true,
		HistoryLimit:           maxHistory + 2, // and the line that is edited
		Listener:               readline.FuncListener(t.changed),
		FuncFilterInputRune:    t.key,
	})
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	resized, stop := watchTerminal()
	t.stop = stop
	t.watched.Go(func() {
		for range resized {
			t.resized()
		}
	})
	return t, nil
}

type closing struct {
	io.Reader
	io.Closer
}

// Close gives the terminal back as it was.
func (t *Terminal) Close() error {
	t.stop()
	t.watched.Wait()
	// A read of the terminal that is under way cannot be ended; it ends with the
	// process.
	err := t.stdin.Close()
	if t.pending != nil {
		t.rl.Terminal.KickRead() // should it wait for that, it reads, and finds the end
		<-t.pending
	}
	return errors.Join(err, t.rl.Close())
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

// ReadEntry reads an entry behind a prompt. The error is ErrInterrupted for Ctrl-C,
// io.EOF for Ctrl-D on an empty line and for a terminal that is gone, or the end of
// ctx, after which there is only Close.
func (t *Terminal) ReadEntry(ctx context.Context, prompt string) (string, error) {
	if t.pending != nil {
		return "", io.EOF
	}
	// The history begins at its end for each entry.
	t.rl.ResetHistory()
	for _, e := range t.o.History.entries {
		if err := t.rl.SaveHistory(string(edited(e))); err != nil {
			return "", err
		}
	}
	t.mu.Lock()
	t.prompt, t.entered = clean(prompt), false
	t.mu.Unlock()
	read := make(chan entry, 1)
	go func() {
		line, err := t.rl.Operation.Runes()
		read <- entry{line, err}
	}()
	var e entry
	select {
	case e = <-read:
	case <-ctx.Done():
		t.pending = read
		t.mu.Lock()
		t.leave("")
		t.mu.Unlock()
		return "", errors.Join(context.Cause(ctx), t.restore())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case errors.Is(e.err, readline.ErrInterrupt):
		t.leave("^C")
		return "", ErrInterrupted
	case e.err != nil:
		t.leave("")
		return "", e.err
	}
	t.line = e.line
	t.leave("")
	return textOf(e.line), nil
}

// clean leaves out of a prompt what a terminal does not print.
func clean(prompt string) string { return strings.ReplaceAll(format.Escape(prompt), `\\`, `\`) }

// leave goes to the row below the line. The caller holds t.mu.
func (t *Terminal) leave(mark string) {
	if !t.reading {
		return
	}
	t.reading, t.found.on = false, false
	t.screen.leave(t.prompt, t.line, mark)
	t.screen.write([]byte(pasteOff))
}

// Interrupt is told of the signal, and tells whether it was for the line: here Ctrl-C
// is a key, and only behind Enter it is a signal for what comes then.
func (t *Terminal) Interrupt() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.entered
}

// SetPrompt changes the prompt, also of a line that is being edited.
func (t *Terminal) SetPrompt(prompt string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prompt = clean(prompt)
	t.show()
}

// Above runs something that prints lines while a line is being edited: they stand
// above it.
func (t *Terminal) Above(print func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.reading {
		print()
		return
	}
	t.screen.remove()
	print()
	t.show()
}

// show draws the line, if there is one. The caller holds t.mu.
func (t *Terminal) show() {
	if !t.reading {
		return
	}
	if !t.found.on {
		t.screen.draw(t.prompt, t.line, t.cursor)
		return
	}
	word := "search"
	if t.found.missed {
		word = "not found"
	}
	prompt := fmt.Sprintf("(%s %s) ", word, format.Quote(textOf(t.found.query)))
	t.screen.draw(prompt, t.line, len(t.line))
}

// resized draws again, unless a key came first and did.
func (t *Terminal) resized() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if width, height := t.size(); width != t.screen.width || height != t.screen.height {
		t.show()
	}
}

// The two below are called by readline's goroutine: key with each key before
// readline takes it, changed behind it with the line that became of it.

// key returns what readline is to take for the key. It must always take something:
// for a key that is refused it would read on while a command runs.
func (t *Terminal) key(pressed rune) (rune, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.meaning(pressed)
	switch pressed {
	case readline.CharEnter, readline.CharCtrlJ, readline.CharInterrupt, readline.CharDelete:
		if r != pressed {
			// Behind these readline stops reading, for they could end the entry.
			t.rl.Terminal.KickRead()
		}
	}
	return r, true
}

// meaning is called with t.mu.
func (t *Terminal) meaning(r rune) rune {
	if r == 0 {
		// The terminal is gone. What was typed is not an entry; readline would take it
		// for one.
		t.rl.Operation.SetBuffer("")
		return r
	}
	if t.found.on {
		if r = t.searchKey(r); t.found.on || r == keyNone {
			return keyNone
		}
	}
	switch {
	case r == readline.CharEnter || r == readline.CharCtrlJ:
		if incomplete(textOf(t.line)) {
			return byteBase + '\n'
		}
		t.entered = true
	case r == readline.CharBckSearch:
		t.found = search{on: true, at: len(t.o.History.entries), saved: t.line}
		return keyNone
	case r == readline.CharTranspose && len(t.line) < 2:
		return keyNone // readline would panic
	case (r == readline.CharCtrlW || r == readline.MetaBackspace) && t.inFirstWord():
		return readline.CharCtrlU // readline would delete the rest of the line too
	case r == readline.CharCtrlZ:
		t.suspend()
		return keyNone
	case r >= 0 && r < ' ' && !strings.ContainsRune("\x01\x02\x03\x04\x05\x06\x08\x09\x0b\x0c\x0e\x10\x14\x15\x17\x19", r):
		return keyNone
	}
	return r
}

// inFirstWord tells whether only the first word of the line, and what is before it,
// stands before the cursor. The caller holds t.mu.
func (t *Terminal) inFirstWord() bool {
	for i := 1; i < t.cursor; i++ {
		if !readline.IsWordBreak(t.line[i]) && readline.IsWordBreak(t.line[i-1]) {
			return false
		}
	}
	return true
}

// incomplete tells whether Enter goes on in the next line.
func incomplete(text string) bool {
	for r := NewReader(strings.NewReader(text)); ; {
		_, err := r.Next()
		if errors.Is(err, ErrIncomplete) {
			return true
		}
		if _, bad := errors.AsType[*LineError](err); err != nil && !bad {
			return false
		}
	}
}

// changed gets the line behind each key, and returns it as it is to be. Key 0 is
// the beginning of an entry.
func (t *Terminal) changed(line []rune, cursor int, key rune) ([]rune, int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if key == 0 {
		t.line, t.cursor, t.reading = nil, 0, true
		t.screen.write([]byte(pasteOn))
		t.show()
		return nil, 0, false
	}
	switch key {
	case readline.CharEnter, readline.CharCtrlJ, readline.CharInterrupt:
		return nil, 0, false // the entry is over, and perhaps the next has begun
	case readline.CharDelete:
		if len(t.line) == 0 {
			return nil, 0, false
		}
	}
	changed := false
	if cursor > 0 && isKey(line[cursor-1]) {
		cursor--
		line = append(line[:cursor:cursor], line[cursor+1:]...)
		changed = true
	}
	switch key {
	case keyPaste:
		pasted := edited(t.keys.paste())
		line = append(line[:cursor:cursor], append(pasted, line[cursor:]...)...)
		cursor += len(pasted)
	case keyDelete:
		if cursor < len(line) {
			line = append(line[:cursor:cursor], line[cursor+1:]...)
		}
	case readline.CharTab:
		line, cursor = t.complete(line, cursor)
		changed = true
	case readline.CharCtrlL:
		t.screen.clear()
	}
	t.line, t.cursor = line, cursor
	if !t.keys.more() {
		t.show()
	}
	return line, cursor, changed
}

// complete is called with t.mu, which it lets go while it looks for candidates.
func (t *Terminal) complete(line []rune, cursor int) ([]rune, int) {
	if t.o.Complete == nil {
		return line, cursor
	}
	t.mu.Unlock()
	before := textOf(line[:cursor])
	start, text, candidates := complete(before, t.o.Complete)
	t.mu.Lock()
	head := edited(before[:start] + text)
	whole := append(head, line[cursor:]...)
	if len(candidates) > 0 && t.reading {
		t.screen.leave(t.prompt, line, "")
		t.screen.write([]byte(listed(candidates, t.screen.width)))
	}
	return whole, len(head)
}

// searchKey takes a key of a search and returns the one that readline is to take,
// keyNone if none.
func (t *Terminal) searchKey(r rune) rune {
	s := &t.found
	take := func(line []rune) {
		t.line, t.cursor = line, len(line)
		t.rl.Operation.SetBuffer(string(line))
	}
	switch {
	case r == readline.CharBckSearch:
		t.find(s.at - 1)
	case r == readline.CharBackspace || r == readline.CharCtrlH:
		s.query = s.query[:max(len(s.query)-1, 0)]
		t.find(len(t.o.History.entries) - 1)
	case r == readline.CharInterrupt || r == readline.CharBell:
		s.on = false
		take(s.saved)
	case r >= ' ' && !isKey(r) && r != 0x7f:
		s.query = append(s.query, r)
		t.find(min(s.at, len(t.o.History.entries)-1))
	default:
		s.on = false
		take(t.line)
		return r
	}
	if s.on {
		take(t.line)
	}
	return keyNone
}

// find goes back through the history from an entry on.
func (t *Terminal) find(from int) {
	query := textOf(t.found.query)
	t.found.missed = false
	if query == "" {
		t.line, t.found.at = t.found.saved, len(t.o.History.entries)
		return
	}
	for i := from; i >= 0; i-- {
		if e := t.o.History.entries[i]; strings.Contains(e, query) {
			t.found.at, t.line = i, edited(e)
			return
		}
	}
	t.found.missed = true
}
