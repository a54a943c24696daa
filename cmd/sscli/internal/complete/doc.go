// Package complete finds what Tab offers, in the user's shell and in the shell of sscli.
//
// [Register] gives a whole tree of commands its completions, before cobra completes a line.
// Commands with operands of their own set ValidArgsFunction to [Keys] or [ContextNames].
//
// Keys come from the store, if a broker is configured, and if the store supports SCAN and
// replies within [Timeout]; in sscli's shell they are the keys seen so far. Completion prints
// no errors. A key that the user's shell would have to quote is offered only if the completion
// script of that shell quotes it; otherwise the shell might run part of the key as a command.
package complete
