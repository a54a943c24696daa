package dataset

import (
	"bufio"
	"bytes"
)

// A lineEnds reads CSV for package csv, which takes a CR alone for text, and reads a CRLF in a quoted
// cell as LF. Outside of quotes, lineEnds makes LF of each CR and CRLF, as spreadsheets do. In a quoted
// cell it makes CR CRLF of each CRLF, of which package csv reads CRLF.
type lineEnds struct {
	source *bufio.Reader
	quoted bool // in a quoted cell: after an odd number of quotation marks
	cr     bool // the previous byte was a CR, which is not in text yet
	text   []byte
	buffer []byte
}

// Read implements [io.Reader].
func (l *lineEnds) Read(p []byte) (int, error) {
	for len(l.text) == 0 {
		if err := l.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.text)
	l.text = l.text[n:]
	return n, nil
}

// fill sets text to what the next bytes of source become. text is valid until the next fill.
func (l *lineEnds) fill() error {
	_, err := l.source.Peek(1)
	chunk, _ := l.source.Peek(l.source.Buffered())
	switch {
	case len(chunk) == 0 && l.cr: // the last byte
		l.text = l.end(l.buffer[:0])
		return nil
	case len(chunk) == 0:
		return err
	case !l.cr && bytes.IndexByte(chunk, '\r') < 0:
		l.quoted = l.quoted != (bytes.Count(chunk, []byte(`"`))%2 == 1)
		l.text = chunk
	default:
		l.buffer = l.buffer[:0]
		for _, c := range chunk {
			if l.cr && c == '\n' && l.quoted {
				l.buffer = append(l.buffer, "\r\r"...)
			} else if l.cr && c != '\n' {
				l.buffer = l.end(l.buffer)
			}
			if l.cr = c == '\r'; !l.cr {
				l.buffer = append(l.buffer, c)
			}
			l.quoted = l.quoted != (c == '"')
		}
		l.text = l.buffer
	}
	_, _ = l.source.Discard(len(chunk)) // cannot fail: chunk is buffered
	return nil
}

// end appends what a CR without LF becomes.
func (l *lineEnds) end(text []byte) []byte {
	l.cr = false
	if l.quoted {
		return append(text, '\r')
	}
	return append(text, '\n')
}
