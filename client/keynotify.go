package client

import "github.com/sscli/sscli/internal/wire"

// keyNotifyResult is the reply to keyNotify and keyNotifyStop.
type keyNotifyResult struct{ ReplyInfo }

// keyNotify returns a command that asks the store to notify the client of changes to a key. The key need
// not exist. The registration ends with the connection (protocol.md 2.5).
func keyNotify(key string) Command {
	return newCommand(effectNone, readKeyNotify, wire.VerbKeyNotify, key)
}

func keyNotifyStop(key string) Command {
	return newCommand(effectNone, readKeyNotify, wire.VerbKeyNotify, key, wire.OptionStop)
}

// readKeyNotify accepts both OK and a number, because it is unknown which of the two the store sends
// in reply to a repeated KEYNOTIFY.
func readKeyNotify(v wire.Value, info *ReplyInfo) Result {
	if !isOK(v) && !(v.Kind == wire.Integer && v.Int >= 0) {
		return nil
	}
	return keyNotifyResult{*info}
}
