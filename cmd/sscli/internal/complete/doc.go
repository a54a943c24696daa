// Package complete finds the candidates for Tab completion, in the user's shell and in sscli's.
//
// [Register] sets the completions of a whole tree of commands. Call it before cobra completes a
// line. Commands whose operands are keys or contexts set ValidArgsFunction to [Keys] or
// [ContextNames].
//
// Keys come from the store, if a broker is configured, and if the store supports SCAN and
// replies within [Timeout]; in sscli's shell they are the keys seen so far. Completion prints
// no errors. A key that the user's shell would have to quote is offered only if the completion
// script of that shell quotes it; otherwise the shell might run part of the key as a command.
package complete
