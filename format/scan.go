package format

import "unicode/utf8"

// Key is a key that `scan` found.
type Key struct {
	Key string `json:"key"`
}

func (k Key) fields(o *objectWriter) { o.result("scan", k) }

func (k Key) human(w *writer) { w.row(k) }

func (k Key) cells(s *style) []cell { return []cell{{text: Word(k.Key), paint: s.key, whole: true}} }

func (k Key) raw(w *writer) { w.record(k.Key) }

// LongKey is a key that `scan --long` found. Create it with [NewLongKey].
type LongKey struct {
	Key     string  `json:"key"`
	Size    int     `json:"size"`    // of the value, in bytes
	Version Version `json:"version"` // zero = not sent by the store
	Preview string  `json:"preview"` // the first bytes of the value
}

// maxPreview is the maximum number of bytes of a value that a LongKey shows.
const maxPreview = 64

// NewLongKey returns a LongKey. It copies only the part of value that the LongKey shows.
func NewLongKey(key string, value []byte, v Version) LongKey {
	begin := value[:min(len(value), maxPreview)]
	// Do not cut within a character: text must stay valid UTF-8.
	for cut := len(begin); len(begin) < len(value) && cut > len(begin)-utf8.UTFMax && cut > 0; {
		cut--
		if utf8.RuneStart(begin[cut]) {
			if !utf8.FullRune(begin[cut:]) {
				begin = begin[:cut]
			}
			break
		}
	}
	return LongKey{Key: key, Size: len(value), Version: v, Preview: string(begin)}
}

func (k LongKey) cut() bool { return len(k.Preview) < k.Size }

func (k LongKey) fields(o *objectWriter) {
	o.result("scan", k)
	o.add("cut", when(k.cut(), true))
}

func (k LongKey) human(w *writer) { w.row(k) }

func (k LongKey) titles(*style) []string { return []string{"SIZE", "WRITTEN", "KEY", "VALUE"} }

func (k LongKey) cells(s *style) []cell {
	written := "unknown"
	if !k.Version.IsZero() {
		written = Age(s.now().Sub(k.Version.Time()))
	}
	return []cell{
		{text: Size(int64(k.Size)), right: true, least: len("999.9 kB")},
		{text: written, paint: s.faint, least: ageColumns},
		{text: Word(k.Key), paint: s.key},
		{text: ValueStart([]byte(k.Preview), k.Size)},
	}
}

// raw writes the key, the version, the size, and the beginning of the value.
func (k LongKey) raw(w *writer) { w.record(k.Key, versionOr(k.Version, "?"), k.Size, k.Preview) }
