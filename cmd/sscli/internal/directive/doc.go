// Package directive runs what a line of a shell or of a batch may hold besides commands: expect,
// repeat, say, sleep and time.
//
// [Is] recognizes a directive, [Run] runs it:
//
//	if directive.Is(words[0].Text) {
//		return directive.Run(ctx, a, words, run)
//	}
//
// run is the caller's own function for the words of a line, so directives nest: `time repeat 3
// get a`. [Usages] is for help and completion.
package directive
