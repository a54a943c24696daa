// Package client is a client for the state store of the Azure IoT Operations MQTT broker.
//
//	s, err := client.Dial(ctx, client.Options{Address: "127.0.0.1:1883"})
//	if err != nil { … }
//	defer s.Close()
//	set, err := s.Set(ctx, "setpoint", []byte("21.5"))
//	…
//	get, err := s.Get(ctx, "setpoint")
//	…
//	fmt.Println(set.Applied, get.Found, string(get.Value), get.Version)
//
// Keys are strings and values are byte slices; both may hold any bytes.
//
// A request can also be built as a value, a [Command]: the functions [Get], [Set], [Del], [VDel],
// [Scan] and [Call] each return a Command. [Session.Do] sends a command, and [Session.Pipeline] keeps many
// commands in flight. The store's reply is a [Result], whose type depends on the command.
//
//	get, err := client.As[client.GetResult](s.Do(ctx, client.Get("setpoint")))
//
// A session from [New] connects when its first request comes, which saves a program that sends only one
// request a round trip or two.
//
// [Session.Follow] yields the current value of a key, [Session.Mirror] keeps the keys of a pattern in memory,
// [Session.Watch] reports each change, [Session.Keys] lists keys, [Session.WithLock] holds a lock while a function runs,
// and [Session.Update] changes a value under a lock.
//
// Options come last in a call, and may be left out.
//
// [Class] says what to do about an error; test for single ones with errors.Is and errors.AsType. The comment of
// [Session.Do] has a list of the errors.
//
// Promises:
//   - A "no" (the key is missing, the condition was not met) is a result, not an error.
//     An error from the store is a *[StoreError].
//   - A write reaches the store at most once. If it gets no reply, the error is a
//     *[LostReplyError], and [Session.ReadBack] checks whether the write was applied.
//   - Replies are matched by correlation data, whether they come before or after the PUBACK.
//     Late, duplicate and unknown replies are dropped.
//   - Until the context of a [Lock] ends, no other client holds the lock; see [LockTiming] for
//     the assumptions.
//   - With Options.RetryFor, a read that got no reply is sent again.
//   - A session that lost its connection reconnects for the next request, unless the broker's
//     reason was permanent ([IsPermanent]). A refused login is permanent until the password or
//     token changes.
//
// Neither this package nor the store promises an order between requests that are outstanding at
// the same time. Wait for a result before you send a request that depends on it.
package client
