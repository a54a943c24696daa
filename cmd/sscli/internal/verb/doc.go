// Package verb has the commands that send requests to the store: get, set, del, vdel, scan,
// call and keynotify. Each has a file of its own name.
//
// A [Verb] is used by the command line and by a batch alike: bind its flags, parse its
// operands to a [Request], carry the request out.
//
//	v := makeVerb() // one of Makers()
//	v.Flags(flags)  // may be nil
//	…
//	req, err := v.Parse(operands, source, nil)
//	…
//	err = verb.Do(a, ctx, req)
//
// [Command] makes a row of the command table. [Do] carries out a request of the command
// line; a batch, which has a session already, calls [DoMany], or [Carry] and [Finish].
//
// If the reply to a write is lost, the key is read back to find out what became of the write
// (settle.go). With --force-fence the request gets the token that the key needs (force.go). No
// write is repeated.
package verb
