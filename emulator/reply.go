package emulator

import (
	"time"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/store"
)

// Types of the store that callers of this package need.
type (
	// Variants switches to other forms of what the protocol leaves open.
	Variants = store.Variants

	// EngineOptions configure the store of [Attach].
	EngineOptions = store.Options

	// Cause is why a key changed.
	Cause = store.Cause
)

// The causes of a [Change].
const (
	CauseSet     = store.CauseSet
	CauseSetPX   = store.CauseSetPX
	CauseDel     = store.CauseDel
	CauseVDel    = store.CauseVDel
	CauseExpired = store.CauseExpired
)

// A Response is the answer to a request.
type Response struct {
	Payload    []byte
	Version    wire.Version // of `__ts`; zero if there is none
	Properties []Property   // the user properties, in order
}

// cloneProperties copies properties of the store.
func cloneProperties(of []store.Property) []Property {
	properties := make([]Property, len(of))
	for i, p := range of {
		properties[i] = Property{p.Name, string(p.Value)}
	}
	return properties
}

// version parses the text of a version. Without one it returns the zero Version.
func version(text []byte) wire.Version {
	v, err := wire.ParseVersion(string(text))
	if err != nil {
		return wire.Version{}
	}
	return v
}

// An Entry is the state of a key. The protocol never shows the fence (protocol.md 4).
type Entry struct {
	Value   []byte
	Version wire.Version
	Fence   wire.Version // zero: not fenced
	Persist bool
	Expires time.Time // zero: never
}

func newEntry(e store.Entry) Entry {
	return Entry{
		Value: append([]byte{}, e.Value()...), Version: version(e.Version()), Fence: version(e.Fence()),
		Persist: e.Persist(), Expires: e.Expires(),
	}
}
