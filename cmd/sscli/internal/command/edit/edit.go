// Package edit is the command `sscli edit`, which opens a key's value in the user's editor.
//
//	sscli edit config
//	sscli edit config --lock config-lock
//
// [New] makes the command. A [document] converts a value to text for the editor, and back. The user's
// text is never lost: if it is not written to the store, it stays in a file that the error names.
package edit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/command/lock"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/jsonfield"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/wire"
)

// New returns the command `sscli edit`.
func New(a *app.App) *cobra.Command {
	var lockName config.Text
	cmd := &cobra.Command{
		Use:     "edit KEY",
		Short:   "Edit a value in your editor",
		GroupID: app.GroupFiles,
		Long: `Open the value of KEY in $VISUAL or $EDITOR (default vi, on Windows
notepad) and store what you save. A missing key is created.

If the value is a JSON object or array, the text must still be JSON, or edit asks what to
do. JSON without spaces is indented for the editor and stored without spaces; everything
else is stored as saved, less a final newline if the old value had none. Values that are
not text are refused.

If you change nothing, nothing is written. If the editor ends with an exit code other than
0, or another client changes the key while you edit, nothing is written either, the exit
code is 1, and your text stays in a file, in the form in which it would be stored. A swap
file of the editor stays too. For a key that changed, stderr shows how your text differs
from the value. An empty file is not written: sscli set KEY '' writes an empty value.

The store cannot compare and set. edit reads the key again right before it writes, so it
can overwrite another client's write unseen only within one round trip. With --lock NAME,
it holds that lock while you edit, and writes with the lock's current fencing token, so
that no other holder of the lock can write in the meantime. From then on the key is
protected: every write to it needs a token. Editing a key removes its expiry.`,
		Example:           "  sscli edit config\n  sscli edit config --lock config-lock\n  EDITOR='code --wait' sscli edit config",
		Args:              usage.ExactArgs("KEY"),
		ValidArgsFunction: complete.Keys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), a, args[0], string(lockName))
		},
	}
	cmd.Flags().Var(&lockName, "lock", "hold the lock `NAME` while you edit, and write with its fencing token")
	return cmd
}

// editorWords returns the words of the editor's command line, and the name of the environment variable
// that they come from. The name is empty for the default editor.
func editorWords(a *app.App) (command []string, source string, err error) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		line, _ := a.Env(name)
		command, err := splitCommand(line)
		if err != nil {
			return nil, name, fault.Usagef("%s: %w", name, err)
		}
		if len(command) > 0 {
			return command, name, nil
		}
	}
	if runtime.GOOS == "windows" {
		return []string{"notepad"}, "", nil
	}
	return []string{"vi"}, "", nil
}

// isFullScreen reports whether an editor is known to need a terminal. Other editors may be scripts, or
// may open a window.
func isFullScreen(editor string) bool {
	return slices.Contains(strings.Fields("vi vim nvim view elvis nano pico micro joe jed ne mcedit hx helix kak"), editor)
}

// getAndSet returns a hint that names the commands to use instead of edit.
func getAndSet(key string) suggest.Hint {
	return suggest.Try("`sscli get KEY -f FILE`; then `sscli set KEY -f FILE`").Fill(suggest.Key, key)
}

func run(ctx context.Context, a *app.App, key, lockName string) error {
	command, source, err := editorWords(a)
	if err != nil {
		return err
	}
	for _, k := range []string{key, lockName} {
		if err := client.Get(k).Check(); err != nil && (k == key || lockName != "") {
			return &fault.UsageError{Err: err}
		}
	}
	if key == lockName {
		return fault.Usagef("--lock %s: the lock is the key itself", format.BriefWord(lockName))
	}
	if editor := filepath.Base(command[0]); isFullScreen(editor) && a.Shell == nil && !a.OnTerminal() {
		return &fault.UsageError{
			Err:  fmt.Errorf("the editor %s needs a terminal, and standard input or output is not a terminal", format.Path(editor)),
			Hint: getAndSet(key),
		}
	}
	what := "edit " + format.Brief(key)
	if lockName != "" {
		what += " with the lock " + format.Brief(lockName)
	}
	if err := a.Confirm(ctx, what); err != nil {
		return err
	}
	a.RememberKey(key)
	return a.WithSession(ctx, func(s *client.Session, _ client.Options) (err error) {
		e := editRun{app: a, session: s, key: key, command: command, source: source}
		if lockName != "" {
			l, release, err := lock.Hold(ctx, a, s, lockName)
			if err != nil {
				return err
			}
			e.lock = l
			return errors.Join(e.run(ctx), release())
		}
		return e.run(ctx)
	})
}

// An editRun is one run of `sscli edit`.
type editRun struct {
	app     *app.App
	session *client.Session
	key     string
	command []string
	source  string       // the variable that names the editor; empty = the default editor
	lock    *client.Lock // nil without --lock

	before client.GetResult // what the key held when it was first read
	doc    document
	file   string // the file for the editor, alone in its directory
	asIs   bool   // the user chose to write a text that is not JSON
}

func (e *editRun) run(ctx context.Context) (err error) {
	if e.before, err = verb.ReadKey(ctx, e.app, e.session, e.key); err != nil {
		return err
	}
	var ok bool
	if e.doc, ok = newDocument(e.before.Value); !ok {
		return &fault.UsageError{
			Err:  fmt.Errorf("the value of %s is not text, so an editor may damage it", format.BriefWord(e.key)),
			Hint: getAndSet(e.key),
		}
	}
	if err := e.writeFile(); err != nil {
		return err
	}
	value, err := e.edit(ctx)
	if err == nil && value != nil {
		err = e.store(ctx, value)
	}
	if err == nil || fault.IsA[*fault.OutputError](err) { // the value was written or is unchanged
		return errors.Join(err, e.removeFile())
	}
	return e.keepFile(err)
}

// writeFile writes the text for the editor to a new file that only this user can read. The name of the
// file contains the beginning of the key.
func (e *editRun) writeFile() error {
	dir, err := os.MkdirTemp(files.TempDir(), "sscli-edit-")
	if err != nil {
		return err
	}
	const maxName = 40
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, e.key)
	ext := ".txt"
	if e.doc.isJSON {
		ext = ".json" // editors choose syntax colors by the extension
	}
	e.file = filepath.Join(dir, "value-"+name[:min(len(name), maxName)]+ext)
	if err := files.Write(e.file, e.doc.text, 0o600); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// removeFile removes the file with its directory. On Windows it retries, because a virus scanner may
// hold the file open for a moment.
func (e *editRun) removeFile() error {
	return files.RetryBusy(func() error { return os.RemoveAll(filepath.Dir(e.file)) })
}

// keepFile adds the name of the file to err. If the text in the file is unchanged, empty or gone, keepFile
// removes the file instead, unless the editor left another file, from which it can recover the text.
func (e *editRun) keepFile(err error) error {
	text, readErr := files.ReadFile(e.file, files.MaxValue)
	if readErr == nil && (bytes.Equal(text, e.doc.text) || len(text) == 0) || errors.Is(readErr, fs.ErrNotExist) {
		if left := e.leftFile(); left != "" {
			return fmt.Errorf("%w; the editor left %s", err, format.Path(left))
		}
		return errors.Join(err, e.removeFile())
	}
	if fault.IsStoreError(wire.ErrorFenceRequired)(err) {
		err = &fault.NextError{Err: err, Hint: suggest.Try("`sscli edit KEY --lock LOCK`, with the lock that protects the key").Fill(suggest.Key, e.key)}
	}
	if refused, ok := errors.AsType[*fault.NotWrittenError](err); ok {
		hint := "`sscli edit KEY` again, with the text from that file, corrected"
		if readErr == nil && e.keepValue(text) == nil {
			hint = "`sscli set KEY -f FILE` writes it anyway"
			if e.lock != nil { // the key may need a token
				hint = "`sscli lock run NAME -- sscli set KEY -f FILE --fence lock` writes it anyway"
			}
		}
		refused.Hint = suggest.Try(hint).Fill(suggest.Key, e.key).Fill(suggest.File, e.file)
		if e.lock != nil {
			refused.Hint = refused.Hint.Fill(suggest.Name, e.lock.Name())
		}
	}
	return fmt.Errorf("your text is in %s: %w", format.Path(e.file), err)
}

// keepValue puts the value that edit would have stored for a text into the file. It leaves the file alone and
// returns an error if there is no such value, because the text is not JSON.
func (e *editRun) keepValue(text []byte) error {
	value, bad := e.doc.value(text)
	if bad != nil && !e.asIs {
		return bad
	}
	return files.Write(e.file, value, 0o600)
}

// leftFile returns a file that the editor left beside the text, such as the swap file of an editor that was
// killed. It returns "" if there is none.
func (e *editRun) leftFile() string {
	entries, _ := os.ReadDir(filepath.Dir(e.file)) // those before an error
	for _, entry := range entries {
		if name := filepath.Join(filepath.Dir(e.file), entry.Name()); name != e.file && entry.Type().IsRegular() {
			return name
		}
	}
	return ""
}

// edit runs the editor and returns the new value, or nil if nothing changed.
func (e *editRun) edit(ctx context.Context) ([]byte, error) {
	runner := process.NewRunner()
	defer runner.Close()
	name := format.Path(e.command[0])
	e.app.Inform("editing " + format.BriefWord(e.key) + " with " + name)
	for {
		code, err := runner.Run(process.Command{Args: append(e.command[:len(e.command):len(e.command)], e.file)})
		if err != nil {
			if e.source != "" {
				err = fmt.Errorf("%s: %w", e.source, err)
			}
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if code != 0 {
			return nil, &fault.NotWrittenError{Why: fmt.Sprintf("the editor %s ended with exit code %d, nothing was written", name, code)}
		}
		text, err := files.ReadFile(e.file, files.MaxValue)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &fault.NotWrittenError{Why: fmt.Sprintf("the editor %s removed the file, nothing was written", name)}
		}
		if err != nil {
			return nil, err
		}
		value, bad := e.doc.value(text)
		if bad != nil {
			again, err := e.askAbout(ctx, bad)
			if err != nil {
				return nil, err
			}
			if again {
				continue
			}
		}
		if e.before.Found && bytes.Equal(value, e.doc.stored) || bytes.Equal(text, e.doc.text) {
			e.app.Inform("unchanged, nothing was written")
			return nil, nil
		}
		if bad == nil && len(text) == 0 { // probably a fault of the editor or of the disk
			return nil, &fault.NotWrittenError{
				Why:  "the saved file is empty, nothing was written",
				Hint: suggest.Run("sscli", "set", e.key, "").Then(" writes an empty value"),
			}
		}
		return value, nil
	}
}

// askAbout asks what to do with a text that is not JSON, although the old value was JSON: edit it again,
// write it (again is false), or quit (an error).
func (e *editRun) askAbout(ctx context.Context, bad error) (again bool, err error) {
	refused := &fault.NotWrittenError{Why: fmt.Sprintf("the text is not JSON, as the value was: %v; nothing was written", bad)}
	if !e.app.CanAsk() {
		return false, refused
	}
	answer, err := terminal.Ask(ctx, e.app.Stderr, fmt.Sprintf("not JSON: %v. Edit again, write it as it is, or quit? [e/w/q] ", bad))
	if err != nil {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "e", "edit":
		return true, nil
	case "w", "write":
		e.asIs = true
		return false, nil
	}
	return false, refused
}

func (e *editRun) store(ctx context.Context, value []byte) error {
	w := verb.Replacement{
		App: e.app, Session: e.session, Key: e.key, Before: verb.StateOf(e.before),
		Changed: func(now client.GetResult) error { return e.conflict(now, value) },
	}
	if e.lock != nil {
		w.Fence = func() (client.WriteOptions, error) {
			return client.WriteOptions{Fence: e.lock.Token()}, e.lock.Err()
		}
	}
	return w.Set(ctx, string(value), client.SetOptions{})
}

// conflict shows how the edited value differs from what the key holds now, and returns a
// *fault.NotWrittenError.
func (e *editRun) conflict(now client.GetResult, value []byte) error {
	if now.Found {
		e.app.Say(format.EditConflict{Key: e.key, Theirs: now.Value, Ours: value, Fields: jsonfield.Changes(now.Value, value)})
	}
	return verb.NotWritten(e.key, now, "while you edited")
}
