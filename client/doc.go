// Package client speaks to the state store of the Azure IoT Operations MQTT broker.
//
//	s, err := client.Dial(ctx, client.Options{Address: "127.0.0.1:1883"})
//	if err != nil { … }
//	defer s.Close()
//	set, err := s.Set(ctx, "setpoint", []byte("21.5"), client.SetOptions{})
//	…
//	get, err := s.Get(ctx, "setpoint")
//	…
//	fmt.Println(set.Applied, get.Found, string(get.Value), get.Version)
//
// Keys are strings and values are byte slices; both may hold any bytes.
//
// Each request is also a value, a [Command], made by a function of the same name:
// [Get], [Set], [Del], [VDel], [Scan], [Call]. [Session.Do] sends one, [Once] connects for
// one, and [Session.Pipeline] keeps many under way. They return a [Result], whose type
// depends on the command.
//
//	r, err := client.Once(ctx, o, client.Get("setpoint"))
//	…
//	fmt.Println(string(r.(client.GetResult).Value))
//
// [Session.Watch] reports changes, and [Session.Lock] holds a lock.
//
// Errors are tested for with errors.Is and errors.AsType; [Session.Do] lists them. All are
// named in this package, also those that come from its parts, client/mqtt and client/wire.
//
// Promises:
//   - A "no" (the key is missing, the condition was not met) is a result, not an error.
//     An error from the store is a *[StoreError].
//   - A write is sent at most once. When it gets no answer the error is a
//     *[LostAnswerError], and [Session.ReadBack] finds out what can be known.
//   - Replies are matched by correlation data, whether they come before or after the
//     PUBACK; late, duplicate and foreign ones are dropped.
//   - While the context of a [Lock] lives, nobody else has the lock; see [LockTiming] for
//     what that rests on.
//   - A session that lost its connection connects again with the next request, unless
//     the broker's reason was a permanent one ([IsPermanent]). A refused login is
//     permanent until there is another password or token to read.
//
// Not promised: an order between requests that are outstanding at the same time. The
// store does not promise one; wait for a result before you send what depends on it.
package client
