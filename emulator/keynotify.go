package emulator

import (
	"slices"

	"github.com/sscli/sscli/client/wire"
)

// keyNotify registers the client for a key, or with STOP removes it
// (protocol.md 2.5). One STOP is enough however often it was registered.
func (e *Engine) keyNotify(c *call) Response {
	if text := c.arguments(2, 3); text != "" {
		return e.refuse(text)
	}
	stop := len(c.words) == 3
	if stop && e.word(c.words[2]) != wire.OptionStop {
		return e.refuse(wire.TextSyntax)
	}
	if text := e.access(c, false); text != "" {
		return e.refuse(text)
	}
	if text := e.stamps(c, false, false); text != "" {
		return e.refuse(text)
	}
	_, watching := e.watching[c.ClientID][c.key]
	switch {
	case stop && !watching:
		return e.count(0)
	case stop:
		e.unwatch(c.ClientID, c.key)
	case watching && e.opts.Variants.RepeatedWatchZero:
		return e.count(0)
	case !watching:
		e.watch(c.ClientID, c.key)
	}
	return e.ok()
}

func (e *Engine) watch(clientID, key string) {
	if e.watching[clientID] == nil {
		e.watching[clientID] = make(map[string]struct{})
	}
	e.watching[clientID][key] = struct{}{}
	e.watchers[key] = append(e.watchers[key], clientID)
}

func (e *Engine) unwatch(clientID, key string) {
	delete(e.watching[clientID], key)
	if len(e.watching[clientID]) == 0 {
		delete(e.watching, clientID)
	}
	ids := e.watchers[key]
	if i := slices.Index(ids, clientID); i >= 0 {
		ids = slices.Delete(ids, i, i+1)
	}
	if len(ids) == 0 {
		delete(e.watchers, key)
		return
	}
	e.watchers[key] = ids
}

// Disconnect forgets the registrations of a client (protocol.md 2.5).
func (e *Engine) Disconnect(clientID string) {
	for key := range e.watching[clientID] {
		e.unwatch(clientID, key)
	}
}

// Watching is the number of registrations of a client.
func (e *Engine) Watching(clientID string) int { return len(e.watching[clientID]) }

// registrations is the number of registrations of all clients.
func (e *Engine) registrations() int {
	n := 0
	for _, keys := range e.watching {
		n += len(keys)
	}
	return n
}

func (e *Engine) notifySet(en *entry) {
	n := wire.Notification{Op: wire.OpSet, Value: en.value, HasValue: !e.opts.Variants.NotifyNoValue}
	e.notify(en.key, n, en.version)
}

func (e *Engine) notifyDelete(en *entry, cause Cause, version wire.Version) {
	n := wire.Notification{Op: wire.OpDelete}
	switch v := e.opts.Variants; {
	case v.NotifyEXPIRED && cause == CauseExpired:
		n.Op = "EXPIRED"
	case v.NotifyDEL:
		n.Op = "DEL"
	}
	switch v := e.opts.Variants; {
	case v.DeleteNoVersion:
		version = wire.Version{}
	case v.DeleteOldVersion:
		version = en.version
	}
	e.notify(en.key, n, version)
}

func (e *Engine) notify(key string, n wire.Notification, version wire.Version) {
	watchers := e.watchers[key]
	if len(watchers) == 0 {
		return
	}
	if e.opts.Variants.NotifyNoVersion {
		version = wire.Version{}
	}
	var properties []Property
	if !version.IsZero() {
		properties = []Property{{wire.PropTimestamp, version.String()}}
	}
	payload := wire.AppendNotification(nil, n)
	for _, id := range watchers {
		e.notes = append(e.notes, Notification{
			ClientID: id, Key: key, Topic: wire.NotifyTopic(id, key),
			Payload: payload, Version: version, Properties: properties,
		})
	}
}
