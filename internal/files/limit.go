package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// The maximum sizes, in bytes, of what is read as a whole.
const (
	MaxText  = 64 << 20  // text that people write, such as certificates, tokens and policies
	MaxValue = 256 << 20 // what may be a value: a larger one would not fit into an MQTT packet
	MaxKeys  = 64 << 30  // many keys with their values
)

// A SizeError means that a file or a stream is larger than what is read as a whole.
type SizeError struct {
	Max int64 // in bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("larger than %d MiB, the maximum", e.Max>>20)
}

// Limit returns a reader of r whose error is a *[SizeError] if r has more than limit bytes: at the first read if r
// is a regular file, and otherwise after limit bytes. The error is in a *[fs.PathError] if r is a file.
func Limit(r io.Reader, limit int64) io.Reader {
	left := limit
	if Size(r) > limit {
		left = -1
	}
	return &limited{r, limit, left}
}

// Size returns the number of bytes that a regular file has after its current position. It is 0 if that is unknown.
func Size(r io.Reader) int64 {
	f, ok := r.(*os.File)
	if !ok {
		return 0
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	return max(0, info.Size()-at)
}

type limited struct {
	source io.Reader
	limit  int64
	left   int64 // number of bytes that may still come; negative = too many came
}

func (l *limited) Read(p []byte) (n int, err error) {
	if l.left >= 0 {
		p = p[:min(int64(len(p)), l.left+1)]
		n, err = l.source.Read(p)
		l.left -= int64(n)
	}
	if l.left >= 0 {
		return n, err
	}
	err = &SizeError{l.limit}
	if f, ok := l.source.(*os.File); ok {
		err = &fs.PathError{Op: "read", Path: f.Name(), Err: err}
	}
	return max(0, n-1), err
}

// ReadFile is [os.ReadFile] of a file of at most limit bytes, opened with [Open].
func ReadFile(name string, limit int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, limit)
}

// ReadAll is [io.ReadAll] of at most limit bytes. A regular file takes memory once.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	in := Limit(r, limit)
	size := Size(r)
	if size > limit {
		size = 0 // the first read refuses it
	}
	text := make([]byte, 0, size+512)
	for {
		n, err := in.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if err == io.EOF {
			return text, nil
		}
		if err != nil {
			return text, err
		}
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
	}
}
