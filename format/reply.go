package format

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is the RESP3 type of a [Value], its first byte on the wire.
type Kind byte

// The kinds of a [Value]. Raw stands for any other type.
const (
	Raw          Kind = 0
	SimpleString Kind = '+'
	SimpleError  Kind = '-'
	Integer      Kind = ':'
	Blob         Kind = '$'
	Array        Kind = '*'
	Null         Kind = '_'
)

// A Value is one RESP3 value. An unknown Kind is treated as Raw.
type Value struct {
	Kind  Kind
	Text  []byte  // of a SimpleString, SimpleError, Blob or Raw
	Int   int64   // of an Integer
	Items []Value // of an Array
}

// Reply is the result of `call`.
type Reply struct {
	Words   [][]byte // the words of the request
	Value   Value
	Version Version
	RTT     time.Duration // 0: not measured
}

func (r Reply) fields(o *objectWriter) {
	request := make(list, len(r.Words))
	for i, word := range r.Words {
		request[i] = string(word)
	}
	o.add("op", "call")
	o.add("request", request)
	o.add("reply", r.Value.tree())
	o.add("version", r.Version)
	o.add("rtt_ms", rtt(r.RTT))
}

func (v Value) tree() any {
	switch v.Kind {
	case Integer:
		return v.Int
	case Null:
		return null{}
	case SimpleError:
		return object{{"error", string(v.Text)}}
	case Array:
		items := make(list, len(v.Items))
		for i, item := range v.Items {
			items[i] = item.tree()
		}
		return items
	}
	return string(v.Text)
}

func (r Reply) human(dst []byte, s *style) []byte {
	return s.version(r.Value.human(dst, s, ""), r.Version)
}

// human numbers the items of an array. The items of a nested array are indented so that
// they line up below its first.
func (v Value) human(dst []byte, s *style, indent string) []byte {
	switch v.Kind {
	case SimpleString:
		dst = AppendEscape(dst, v.Text)
	case SimpleError:
		dst = append(dst, s.fail.Sprint("(error) ", Escape(v.Text))...)
	case Integer:
		dst = append(dst, integer(v.Int)...)
	case Null:
		dst = append(dst, "(nil)"...)
	case Array:
		if len(v.Items) == 0 {
			dst = append(dst, "(empty array)"...)
			break
		}
		width := len(strconv.Itoa(len(v.Items)))
		for i, item := range v.Items {
			if i > 0 {
				dst = append(dst, indent...)
			}
			dst = fmt.Appendf(dst, "%*d) ", width, i+1)
			dst = item.human(dst, s, indent+strings.Repeat(" ", width+2))
		}
		return dst
	default:
		dst = AppendQuote(dst, v.Text)
	}
	return append(dst, '\n')
}

// raw writes a line for each element of an array and of nested arrays. A null is an empty
// line.
func (r Reply) raw(dst []byte) []byte {
	return r.Value.raw(dst, r.Version)
}

func (v Value) raw(dst []byte, version Version) []byte {
	switch v.Kind {
	case Array:
		for _, item := range v.Items {
			dst = item.raw(dst, version)
		}
		return dst
	case Integer:
		dst = strconv.AppendInt(dst, v.Int, 10)
	default:
		dst = AppendEscape(dst, v.Text)
	}
	if !none(version) {
		dst = appendVersion(append(dst, '\t'), version, "")
	}
	return append(dst, '\n')
}
