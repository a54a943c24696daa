package files

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"unicode/utf16"
	"unicode/utf8"
)

// A TextError means that a text begins with a UTF-16 byte order mark but is not valid UTF-16.
type TextError struct {
	Offset int64 // in bytes, from the beginning of the text
	Why    string
}

func (e *TextError) Error() string { return fmt.Sprintf("not UTF-16: %s at byte %d", e.Why, e.Offset) }

// NewTextReader returns a reader of the text of source. If the text begins with a byte order mark, the
// reader omits the mark and converts UTF-16 to UTF-8. Text without a mark stays unchanged, even if
// it is not UTF-8. The reader returns text as soon as source does. Its errors are a *[TextError] or
// the errors of source.
func NewTextReader(source io.Reader) io.Reader { return &textReader{source: source} }

// DecodeText returns what [NewTextReader] reads from text.
func DecodeText(text []byte) ([]byte, error) { return io.ReadAll(NewTextReader(bytes.NewReader(text))) }

// ReadText reads a file of at most [MaxText] bytes and decodes it like [DecodeText]. The error is a *[fs.PathError].
func ReadText(name string) ([]byte, error) {
	text, err := ReadFile(name, MaxText)
	if err != nil {
		return nil, err
	}
	if text, err = DecodeText(text); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return text, nil
}

// ReadSecret is [ReadText] without a final newline. It returns nil if name is empty.
func ReadSecret(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	text, err := ReadText(name)
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")), err
}

type textReader struct {
	source io.Reader
	text   io.Reader // source without its mark, UTF-16 converted; nil before the first read
}

func (r *textReader) Read(p []byte) (int, error) {
	if r.text == nil {
		if err := r.begin(); err != nil {
			return 0, err
		}
	}
	return r.text.Read(p)
}

// begin reads the beginning of source and sets r.text. It reads a second byte only if the first can
// begin a byte order mark, because a pipe may not have a second byte yet.
func (r *textReader) begin() error {
	var start [3]byte
	if _, err := io.ReadFull(r.source, start[:1]); err != nil {
		return err
	}
	size := 1
	switch start[0] {
	case 0xfe, 0xff:
		size = 2
	case 0xef:
		size = 3
	}
	n, err := io.ReadFull(r.source, start[1:size])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	switch mark := start[:1+n]; string(mark) {
	case "\xef\xbb\xbf":
		r.text = r.source
	case "\xff\xfe":
		r.text = &utf16Reader{in: bufio.NewReader(r.source), order: binary.LittleEndian, offset: 2}
	case "\xfe\xff":
		r.text = &utf16Reader{in: bufio.NewReader(r.source), order: binary.BigEndian, offset: 2}
	default:
		r.text = io.MultiReader(bytes.NewReader(mark), r.source)
	}
	return nil
}

// A utf16Reader converts UTF-16 without a byte order mark to UTF-8.
type utf16Reader struct {
	in     *bufio.Reader
	order  binary.ByteOrder
	offset int64  // of the next byte of in
	text   []byte // converted, and not yet returned by Read
	err    error  // returned by Read after text
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(u.text) == 0 && u.err == nil {
		u.convert()
	}
	if len(u.text) == 0 {
		return 0, u.err
	}
	n := copy(p, u.text)
	u.text = u.text[n:]
	return n, nil
}

// convert converts one character, and then as many as it can without another read from source.
func (u *utf16Reader) convert() {
	const most = 4 << 10 // bytes of u.text
	u.text = u.text[:0]
	for {
		var c rune
		if c, u.err = u.character(); u.err != nil {
			return
		}
		u.text = utf8.AppendRune(u.text, c)
		if u.in.Buffered() < 4 || len(u.text) >= most {
			return
		}
	}
}

func (u *utf16Reader) character() (rune, error) {
	at := u.offset
	first, err := u.unit()
	if err != nil || !utf16.IsSurrogate(first) {
		return first, err
	}
	second, err := u.unit()
	if err != nil && err != io.EOF {
		return 0, err
	}
	c := utf16.DecodeRune(first, second)
	if c == utf8.RuneError { // not a pair: no surrogate pair encodes U+FFFD itself
		return 0, &TextError{at, "half of a surrogate pair"}
	}
	return c, nil
}

// unit returns the next code unit, or io.EOF after the last.
func (u *utf16Reader) unit() (rune, error) {
	var unit [2]byte
	n, err := io.ReadFull(u.in, unit[:])
	if err == io.ErrUnexpectedEOF {
		err = &TextError{u.offset, "half of a character"}
	}
	u.offset += int64(n)
	return rune(u.order.Uint16(unit[:])), err
}
