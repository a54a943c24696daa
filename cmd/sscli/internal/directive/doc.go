// Package directive runs the directives in lines of a shell or a batch, which are not commands of
// sscli: expect, repeat, say, sleep and time.
//
// [Is] recognizes a directive, [Run] runs it:
//
//	if directive.Is(words[0].Text) {
//		return directive.Run(ctx, a, words, run)
//	}
//
// run is the caller's function that runs a line, which may begin with another directive: `time
// repeat 3 get a`. [Usages] is for help and completion.
package directive
