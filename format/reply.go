package format

import (
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
	RTT     time.Duration // 0 = not measured
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
	o.add("rtt_ms", nonZero(r.RTT))
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

func (r Reply) human(w *writer) {
	r.Value.human(w, "")
	w.version(r.Version)
}

// human writes v. It numbers the items of an array, and aligns the items of a nested array with its
// first item. indent precedes each line except the first.
func (v Value) human(w *writer, indent string) {
	switch v.Kind {
	case SimpleString:
		w.print(Escape(v.Text))
	case SimpleError:
		w.print(w.fail.Sprint("(error) ", Escape(v.Text)))
	case Integer:
		w.print(integer(v.Int))
	case Null:
		w.print("(nil)")
	case Array:
		if len(v.Items) == 0 {
			w.print("(empty array)")
			break
		}
		width := len(strconv.Itoa(len(v.Items)))
		for i, item := range v.Items {
			if i > 0 {
				w.print(indent)
			}
			w.printf("%*d) ", width, i+1)
			item.human(w, indent+strings.Repeat(" ", width+2))
		}
		return
	default:
		w.print(Quote(v.Text))
	}
	w.print("\n")
}

// raw writes one line for each value that is not an array, including each item of a nested array: the
// value, which is empty for a null, and the version, if there is one.
func (r Reply) raw(w *writer) { r.Value.raw(w, r.Version) }

func (v Value) raw(w *writer, version Version) {
	switch v.Kind {
	case Array:
		for _, item := range v.Items {
			item.raw(w, version)
		}
		return
	case Integer:
		w.print(strconv.FormatInt(v.Int, 10))
	default:
		w.print(Escape(v.Text))
	}
	if !none(version) {
		w.print("\t", versionText(version, ""))
	}
	w.print("\n")
}
