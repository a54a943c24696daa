// Package client speaks to the state store of the Azure IoT Operations MQTT
// broker. A verb is a value, and a session carries it:
//
//	s, err := client.Dial(ctx, client.Options{Address: "127.0.0.1:1883"})
//	if err != nil { … }
//	defer s.Close()
//	reply, err := s.Do(ctx, client.Set("setpoint", []byte("21.5"), client.SetOptions{}))
//	fmt.Println(reply.OK(), reply.Version)
//
// [Once] does the same for a single request, [Session.Pipeline] keeps many under
// way, [Session.Watch] tells of changes, and [Session.Lock] holds a lock. Keys are strings and values are byte slices; both may hold any bytes.
//
// Promises:
//   - A "no" (the key is missing, the condition was not met) is a [Reply], never
//     an error. An error of the store is a *[wire.StoreError].
//   - A write is sent at most once. When its answer does not come the error is a
//     *[LostAnswerError], and [Session.ReadBack] finds out what can be known.
//   - Replies are matched by correlation data; late, duplicate and foreign ones
//     are dropped, and they may come before or after the PUBACK.
//   - A lock is held while its context lives, and nobody else has it until then;
//     see [LockTiming] for what that rests on.
//   - A session whose connection was lost connects again with the next request,
//     unless the broker's reason was a fatal one. A refused login is fatal until
//     there is another password or token to read.
//
// Not promised: an order between requests that are outstanding at one time. The
// store does not promise one; wait for a reply before sending what depends on it.
package client
