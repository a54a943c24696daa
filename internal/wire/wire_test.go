package wire_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sscli/sscli/internal/wire"
)

// show writes a value in the notation of testdata/vectors.txt.
func show(v wire.Value) string {
	switch v.Kind {
	case wire.SimpleString, wire.SimpleError:
		return string(rune(v.Kind)) + quote(string(v.Text))
	case wire.Integer:
		return ":" + strconv.FormatInt(v.Int, 10)
	case wire.Blob:
		return quote(string(v.Text))
	case wire.Null:
		return "null"
	case wire.Array:
		items := make([]string, len(v.Items))
		for i, item := range v.Items {
			items[i] = show(item)
		}
		return "[" + strings.Join(items, " ") + "]"
	default:
		return fmt.Sprintf("kind %q", v.Kind)
	}
}

func quote(s string) string { return strconv.QuoteToASCII(s) }

func same(got, want string) error {
	if got != want {
		return fmt.Errorf(" got %q\nwant %q", got, want)
	}
	return nil
}

func wantError(got, want error) error {
	if !errors.Is(got, want) {
		return fmt.Errorf("got error %v, want %v", got, want)
	}
	return nil
}

func syntaxErrorAt(err error, offset string) error {
	var e *wire.SyntaxError
	if !errors.As(err, &e) {
		return fmt.Errorf("got error %v, want a *SyntaxError", err)
	}
	if e.Want == "" || e.Got == "" {
		return fmt.Errorf("the error does not say what was expected and what came: %+v", e)
	}
	return same(strconv.Itoa(e.Offset), offset)
}

func versionError(v wire.Version, err error) error {
	if err == nil {
		return fmt.Errorf("got %+v and no error", v)
	}
	if _, want, ok := strings.Cut(err.Error(), ": expected "); !ok || want == "" {
		return fmt.Errorf("the error does not say what was expected: %v", err)
	}
	if v != (wire.Version{}) {
		return fmt.Errorf("got %+v beside an error", v)
	}
	return nil
}

func parseValueErr(b []byte) error        { _, err := wire.ParseValue(b); return err }
func parseRequestErr(b []byte) error      { _, err := wire.ParseRequest(b); return err }
func parseReplyErr(b []byte) error        { _, err := wire.ParseReply(b); return err }
func parseNotificationErr(b []byte) error { _, err := wire.ParseNotification(b); return err }
