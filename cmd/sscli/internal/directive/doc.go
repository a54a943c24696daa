// Package directive has the words that a line of a shell or of a batch has besides commands:
// expect, repeat, sleep and time.
//
// [Is] recognizes one, [Run] runs it:
//
//	if directive.Is(args[0]) {
//		return directive.Run(ctx, a, args, run)
//	}
//
// run is the caller's own function for the words of a line, so line words nest: `time repeat 3
// get a`. [Words] is for help and completion.
package directive
