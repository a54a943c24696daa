package format

import (
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/internal/wire"
)

// Reply is the result of `call`.
type Reply struct {
	Words   [][]byte // the words of the request
	Value   wire.Value
	Version Version
	RTT     time.Duration // 0 = not measured
}

func (r Reply) fields(o *objectWriter) {
	o.add("op", "call")
	o.add("request", r.Words)
	o.add("reply", valueTree(r.Value))
	o.add("version", r.Version)
	o.add("rtt_ms", nonZero(r.RTT))
}

func valueTree(v wire.Value) any {
	switch v.Kind {
	case wire.Integer:
		return v.Int
	case wire.Null:
		return null{}
	case wire.SimpleError:
		return object{{"error", string(v.Text)}}
	case wire.Array:
		items := make(list, len(v.Items))
		for i, item := range v.Items {
			items[i] = valueTree(item)
		}
		return items
	}
	return string(v.Text)
}

func (r Reply) human(w *writer) {
	w.reply(r.Value, "")
	w.version(r.Version)
}

// reply writes v. It numbers the items of an array, and aligns the items of a nested array with its
// first item. indent precedes each line except the first.
func (w *writer) reply(v wire.Value, indent string) {
	switch v.Kind {
	case wire.SimpleString:
		w.print(Escape(v.Text))
	case wire.SimpleError:
		w.print(w.fail.Sprint("(error) ", Escape(v.Text)))
	case wire.Integer:
		w.print(integer(v.Int))
	case wire.Null:
		w.print("(nil)")
	case wire.Array:
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
			w.reply(item, indent+strings.Repeat(" ", width+2))
		}
		return
	default:
		w.print(Quote(v.Text))
	}
	w.print("\n")
}

func (r Reply) raw(w *writer) { w.rawReply(r.Value, r.Version) }

// rawReply writes one line for each value that is not an array, including each item of a nested array:
// the value, which is empty for a null, and the version, if there is one.
func (w *writer) rawReply(v wire.Value, version Version) {
	switch v.Kind {
	case wire.Array:
		for _, item := range v.Items {
			w.rawReply(item, version)
		}
		return
	case wire.Integer:
		w.print(strconv.FormatInt(v.Int, 10))
	default:
		w.print(Escape(v.Text))
	}
	if !version.IsZero() {
		w.print("\t", versionText(version, ""))
	}
	w.print("\n")
}
