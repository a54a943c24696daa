// Package store implements the state store without a network: it turns the bytes of a request
// ([wire]) into the bytes of a response. It uses no connections, goroutines or locks, and it reads the
// time only from [Options].Now.
//
// Begin with [New] and [Store.Do]:
//
//	s := store.New(store.Options{})
//	response := s.Do(&store.Request{ClientID: "c", Payload: payload, Timestamp: stamp}, buffer[:0])
//	for _, n := range s.TakeNotifications() {
//		… // deliver all notifications, in this order, before the response
//	}
//
// Notifications are queued in the order of the changes. A caller that makes several changes in
// one step may take all notifications at the end. For a journal or another front end,
// [Options.Changed] is called for each change as it happens, with the cause of the change.
// [Store.Apply] changes a key without a request; [Store.Lookup] and [Store.From] read keys.
//
// Do and Apply first remove a few of the expired keys and queue their notifications; [Store.Expire] removes
// all. A key that has expired is missing for every method, whether it was removed or not.
// [Store.NextExpiry] returns the time of the next expiry.
//
// The store owns the slices and entries that it returns or passes to functions: they are valid
// until the next call to a method that changes the store. The store copies all data that it keeps from
// its arguments. Only one goroutine at a time may use a Store.
//
// The support matrix in the comment of package emulator shows which rules are documented, seen in the
// SDKs or assumed; [Variants] selects alternative behavior.
package store
