// Package verb carries out requests to the store for the commands get, set, del, vdel, scan, call
// and keynotify.
//
// Each of these commands is a [Verb], returned by New in the command's package. The command line
// and a batch use a Verb in the same way: they bind its flags, parse its operands into a
// [Request], and carry out the request.
//
//	v := get.New()
//	v.Flags(flags) // unless Flags is nil
//	…
//	req, err := v.Parse(operands, source)
//	…
//	err = verb.Do(ctx, a, req)
//
// [Command] adapts a Verb to the command table. [Do] connects and carries out a request; [DoOver]
// uses an existing session. A batch with several requests in flight sends them itself, and calls
// [Recover] to find out whether a write whose reply was lost was applied, and [Present] to turn a
// reply into a result.
//
// With --force-fence a write is sent with a token that the key accepts (fence.go). A write is never
// repeated, except after the store refused its token.
package verb
