package batch

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

// check parses all lines of source and prints the mistakes. It sends nothing.
func (b *batch) check(ctx context.Context, source io.Reader) (first error) {
	lines, stop := lineinput.Read(source, lineinput.Options{JSON: b.flags.load, From: b.flags.From})
	defer stop()
	results := b.app.Out
	defer func() { b.app.Out = results }()
	if b.app.Out, first = format.New(io.Discard, format.Options{Output: "raw"}); first != nil { // hlc and version run, and print
		return first
	}
	count, mistakes := 0, 0
	for line, ok := lineinput.Next(ctx, lines); ok; line, ok = lineinput.Next(ctx, lines) {
		if b.app.Line = line.Number; ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t, err := b.parse(line)
		if err == nil && t.run != nil {
			err = t.run(ctx)
		}
		if line.Number > 0 {
			count++
		}
		if err != nil && err != errNothing && !errors.Is(err, fault.ErrNo) {
			mistakes++
			b.app.Refuse(&first, err)
		}
	}
	b.app.Line = 0
	b.app.Inform(fmt.Sprintf("%s checked, %s; nothing was sent", format.Count(count, "line"), format.Count(mistakes, "mistake")))
	return first
}

// checkWords returns the mistake in the command of a directive, or nil.
func (b *batch) checkWords(words []repl.Word) error {
	t, err := b.parseWords(words)
	if err == nil && t.run != nil {
		err = t.run(context.Background())
	}
	return err
}
