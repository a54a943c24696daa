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
// chzyer/readline edits the line and steps through the history. Its output is discarded, and
// its input is translated by the type keys. The package comment says why.
//
// Only one goroutine may call ReadEntry and Close; any goroutine may call the other methods
// at any time.
type Terminal struct {
	o     TerminalOptions
	rl    *readline.Instance
	stdin *readline.CancelableStdin
	keys  *keys

	cooked  *readline.State // the terminal's state before NewTerminal
	pending chan readResult // the result of readline after a cancelled ReadEntry; nil if none was cancelled
	stop    func()          // stops watching the terminal's size
	watched sync.WaitGroup  // waits for the goroutine that watches the size

	mu      sync.Mutex // guards the fields below
	screen  screen
	prompt  string
	line    []rune
	cursor  int
	reading bool // a line is being edited and drawn
	entered bool // Enter ended the last entry, and the next has not begun
	found   search
}

// search is the state of a history search (Ctrl-R).
type search struct {
	on     bool
	query  []rune
	at     int    // index of the found entry; len(entries) before the first is found
	saved  []rune // the line before the search
	missed bool   // no entry contains the query
}

type readResult struct {
	text string
	err  error
}

// NewTerminal returns a Terminal, which reads from o.In until Close.
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
		Stdin: struct {
			io.Reader
			io.Closer
		}{t.keys, t.stdin},
		Stdout: io.Discard,
		Stderr: io.Discard,
		// readline must not draw, so it sees no terminal. It must not complete or search, so it
		// sees width 0. Terminal does all three.
		FuncIsTerminal:         func() bool { return false },
		FuncGetWidth:           func() int { return 0 },
		FuncOnWidthChanged:     func(func()) {},
		FuncMakeRaw:            t.raw,
		FuncExitRaw:            t.restore,
		DisableAutoSaveHistory: true,
		HistoryLimit:           maxHistory + 2, // also holds the edited line
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

// Close stops reading and restores the terminal's state.
func (t *Terminal) Close() error {
	t.stop()
	t.watched.Wait()
	err := t.stdin.Close() // a read from the terminal may last until the process ends
	if t.pending != nil {
		t.rl.Terminal.KickRead() // makes readline read again and find that stdin is closed
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

// ReadEntry shows a prompt and reads an entry. The error is [ErrInterrupted] after Ctrl-C,
// and io.EOF after Ctrl-D on an empty line or when the terminal is gone. If ctx is done, the
// error wraps context.Cause(ctx), and the Terminal can only be closed.
func (t *Terminal) ReadEntry(ctx context.Context, prompt string) (string, error) {
	if t.pending != nil {
		return "", io.EOF
	}
	// Fill readline's history again. Otherwise, the cursor keys would continue from the entry that the
	// user last recalled.
	t.rl.ResetHistory()
	for _, e := range t.o.History.entries {
		if err := t.rl.SaveHistory(string(edited(e))); err != nil {
			return "", err
		}
	}
	t.mu.Lock()
	t.prompt, t.entered = clean(prompt), false
	t.mu.Unlock()
	read := make(chan readResult, 1)
	go func() {
		line, err := t.rl.Operation.Runes()
		read <- readResult{textOf(line), err}
	}()
	var e readResult
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
	t.line = edited(e.text)
	t.leave("")
	return e.text, nil
}

// clean escapes the unprintable characters of a prompt, but not its backslashes.
func clean(prompt string) string { return strings.ReplaceAll(format.Escape(prompt), `\\`, `\`) }

// leave ends the editing of the line, writes mark after it and moves to the next row. The
// caller holds t.mu.
func (t *Terminal) leave(mark string) {
	if !t.reading {
		return
	}
	t.reading, t.found.on = false, false
	t.screen.leave(t.prompt, t.line, mark)
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
	if !t.reading {
		write()
		return
	}
	t.screen.remove()
	write()
	t.show()
}

// show draws the line if one is being edited. The caller holds t.mu.
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

// resized redraws the line, unless it was already redrawn at the new size.
func (t *Terminal) resized() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if width, height := t.size(); width != t.screen.width || height != t.screen.height {
		t.show()
	}
}

// key translates a key for readline. readline's goroutine calls key, then handles the result, and then
// calls changed. To make readline ignore the key, key returns keyNone. The bool is always true: after
// false, readline would keep reading while a command runs.
func (t *Terminal) key(pressed rune) (rune, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.meaning(pressed)
	switch pressed {
	case readline.CharEnter, readline.CharCtrlJ, readline.CharInterrupt, readline.CharDelete:
		if r != pressed {
			// These keys can end an entry, so readline stops reading after them.
			t.rl.Terminal.KickRead()
		}
	}
	return r, true
}

// meaning translates a key for readline. The caller holds t.mu.
func (t *Terminal) meaning(r rune) rune {
	if r == 0 {
		// The terminal is gone. Without this, readline would return the unfinished line.
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

// inFirstWord reports whether there is at most one word before the cursor. The caller
// holds t.mu.
func (t *Terminal) inFirstWord() bool {
	for i := 1; i < t.cursor; i++ {
		if !readline.IsWordBreak(t.line[i]) && readline.IsWordBreak(t.line[i-1]) {
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

// changed draws the line after readline has handled a key. It returns the line and the cursor to
// continue with, and whether readline must adopt them. Key 0 means that an entry begins.
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
		return nil, 0, false // the entry is over, and the next may have begun
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

// complete completes the word under the cursor. The caller holds t.mu; complete unlocks t.mu while it
// looks for candidates.
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
		t.screen.write([]byte(listing(candidates, t.screen.width)))
	}
	return whole, len(head)
}

// searchKey handles a key during a search. If readline should also handle the key, searchKey
// returns it; otherwise it returns keyNone.
func (t *Terminal) searchKey(r rune) rune {
	s := &t.found
	setLine := func(line []rune) {
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
		setLine(s.saved)
	case r >= ' ' && !isKey(r) && r != 0x7f:
		s.query = append(s.query, r)
		t.find(min(s.at, len(t.o.History.entries)-1))
	default:
		s.on = false
		setLine(t.line)
		return r
	}
	if s.on {
		setLine(t.line)
	}
	return keyNone
}

// find searches the history backwards for the query. from is the index of the first entry to search.
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
