// Package complete is what Tab offers, in the user's shell and in the shell of sscli.
//
// [Register] gives the whole tree of commands its completions. It is called only if
// [IsRequest] says that the user's shell asks for some, or before sscli's own shell completes a
// line:
//
//	if complete.IsRequest(args) {
//		complete.Register(a, root)
//	}
//
// Commands with operands of their own set ValidArgsFunction to [Keys] or [ContextNames].
//
// Keys come from the store, if a broker is configured, has SCAN, and answers within [Timeout];
// in sscli's shell they are the keys seen so far. Completion prints no errors. A key that a
// user's shell would have to quote is never offered there: it might run as a command.
package complete
