package client

import "github.com/sscli/sscli/client/wire"

// KeyNotify asks the store to notify the client of changes to a key, which need
// not exist. The registration ends with the connection (protocol.md 2.5).
// [Session.Watch] takes care of that.
func KeyNotify(key string) Command {
	return newCommand(effectNone, acceptsKeyNotify, wire.VerbKeyNotify, key)
}

// KeyNotifyStop ends the notifications for a key. [Reply.OK] is false if there
// were none.
func KeyNotifyStop(key string) Command {
	return newCommand(effectNone, acceptsKeyNotify, wire.VerbKeyNotify, key, wire.OptionStop)
}

// acceptsKeyNotify is generous: whether a repeated KEYNOTIFY is answered with OK
// or a number is not known.
func acceptsKeyNotify(v wire.Value) bool { return acceptsOK(v) || isCount(0)(v) }
