// Package store is the state store without a network: a function from request to
// response. It knows bytes ([wire]) and no connection, starts no goroutine, takes no
// lock and reads no clock but the one it is given.
//
// The first things to call are [New] and [Store.Do]:
//
//	s := store.New(store.Options{})
//	response := s.Do(&store.Request{ClientID: "c", Payload: payload, Timestamp: stamp}, buffer[:0])
//	for _, n := range s.TakeNotifications() {
//		… // deliver them in this order, and all of them before the response
//	}
//
// Notifications are queued in the order of the changes. A caller that makes several changes
// in one step takes them all at the end. [Options.Changed] is called for each change as it
// happens, with its cause, for a journal or another front end. [Store.Apply] changes a key
// without a request; [Store.Lookup] and [Store.From] read.
//
// Keys that have expired are removed, and their notifications queued, at the beginning of
// each call of Do and Apply, and by [Store.Expire]; [Store.NextExpiry] says when that is due.
//
// The store owns what it returns and what it passes to functions: slices and entries are valid
// until the next call of a method that changes the store. The store copies what it is given. A
// Store may be used by one goroutine at a time.
//
// The support matrix of package emulator says which rule is documented, seen in the SDKs or
// assumed; [Variants] switches to other readings.
package store
