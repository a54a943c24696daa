// Package verb carries out requests to the store: it is what the commands get, set, del, vdel,
// scan, call and keynotify have in common.
//
// Each of these commands is a [Verb], which the function New of its package returns. The command
// line and a batch use a Verb in the same way: they bind its flags, parse its operands to a
// [Request], and carry out the request.
//
//	v := get.New()
//	v.Flags(flags) // unless Flags is nil
//	…
//	req, err := v.Parse(operands, source)
//	…
//	err = verb.Do(ctx, a, req)
//
// [Command] makes the row of the command table. [Do] connects and carries out a request;
// [DoOver] does so over a session that is there already. A batch with several requests in
// flight sends them itself: [Recover] finds out what became of a write whose reply was lost, and
// [Present] turns a reply into a result.
//
// With --force-fence a request gets the token that the key needs (fence.go). No write is
// repeated.
package verb
