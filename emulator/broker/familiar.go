package broker

// familiar remembers the properties of a client's last PUBLISH. Those of its next one mostly
// differ in two values of the same length, the Correlation Data and one User Property, such as
// a time. Then they are not taken apart again.
type familiar struct {
	known       bool
	again       bool   // the properties at hand are the last ones but for the two values
	raw         []byte // a copy of the properties
	before      []byte // those before, whose memory is used again
	correlation span   // the Correlation Data in raw; empty: none
	user        span   // the value of the User Property that differs; empty: none
}

// A span is a part of some bytes.
type span struct{ from, to int }

func (s span) of(b []byte) []byte { return b[s.from:s.to] }

// maxFamiliar bounds the properties that are remembered, in bytes.
const maxFamiliar = 1 << 10

// take is [fields.properties] of a PUBLISH into p, which no one else changes.
func (l *familiar) take(f *fields, p *properties) {
	raw := f.take(f.varint())
	if f.err != nil {
		return
	}
	if l.again = l.like(raw); l.again {
		p.raw, p.correlation = raw, l.correlation.of(raw)
		return
	}
	l.known = false
	if len(raw) > maxFamiliar {
		p.take(f, raw, publishProperties)
		return
	}
	// What p refers to is not changed before the next call.
	l.raw, l.before = append(l.before[:0], raw...), l.raw
	if p.take(f, l.raw, publishProperties); f.err != nil {
		return
	}
	l.known = true
	l.correlation = span{p.correlationAt, p.correlationAt + len(p.correlation)}
	l.user = span{}
	for at := p.userAt; p.seen.has(propUser) && at < len(raw) && raw[at] == propUser; {
		_, value, n := userProperty(raw[at:])
		at += n
		v := span{at - len(value), at}
		differs := len(l.before) == len(raw) && string(v.of(l.before)) != string(value)
		if differs || l.user == (span{}) {
			l.user = v
		}
		if differs {
			break
		}
	}
}

// like reports whether properties are the last ones but for the two values.
func (l *familiar) like(raw []byte) bool {
	a, b := l.correlation, l.user
	if a.from > b.from {
		a, b = b, a
	}
	return l.known && len(raw) == len(l.raw) &&
		string(raw[:a.from]) == string(l.raw[:a.from]) &&
		string(raw[a.to:b.from]) == string(l.raw[a.to:b.from]) &&
		string(raw[b.to:]) == string(l.raw[b.to:]) &&
		validText(l.user.of(raw))
}
