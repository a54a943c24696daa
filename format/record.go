package format

import (
	"strconv"
	"time"
)

// record writes a line of the raw output: values with tabs between them. Text is
// escaped, and durations are in milliseconds. A minus stands for nil, for a missing Version,
// and for a duration of 0, which means not measured.
func (w *writer) record(values ...any) {
	dst := w.out
	for i, value := range values {
		if i > 0 {
			dst = append(dst, '\t')
		}
		switch v := value.(type) {
		case string:
			dst = AppendEscape(dst, v)
		case []byte:
			dst = AppendEscape(dst, v)
		case int:
			dst = strconv.AppendInt(dst, int64(v), 10)
		case int64:
			dst = strconv.AppendInt(dst, v, 10)
		case time.Time:
			dst = appendTime(dst, v)
		case time.Duration:
			dst = appendMilliseconds(dst, v)
		case Version:
			dst = appendVersion(dst, v, "-")
		default:
			dst = append(dst, '-')
		}
	}
	w.out = append(dst, '\n')
}

// versionOr returns v, or absent if there is no version, as a value for record.
func versionOr(v Version, absent string) any {
	if v.IsZero() {
		return absent
	}
	return v
}

// appendMilliseconds appends a duration, or a minus if d is 0, which means not measured.
func appendMilliseconds(dst []byte, d time.Duration) []byte {
	if d == 0 {
		return append(dst, '-')
	}
	return appendFloat(dst, milliseconds(d))
}
