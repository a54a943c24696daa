package main

import (
	"github.com/sscli/sscli/cmd/sscli/internal/batch"
	"github.com/sscli/sscli/cmd/sscli/internal/bench"
	"github.com/sscli/sscli/cmd/sscli/internal/cli"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/contexts"
	"github.com/sscli/sscli/cmd/sscli/internal/doctor"
	"github.com/sscli/sscli/cmd/sscli/internal/edit"
	"github.com/sscli/sscli/cmd/sscli/internal/gateway"
	"github.com/sscli/sscli/cmd/sscli/internal/hlc"
	"github.com/sscli/sscli/cmd/sscli/internal/lock"
	"github.com/sscli/sscli/cmd/sscli/internal/manual"
	"github.com/sscli/sscli/cmd/sscli/internal/ping"
	"github.com/sscli/sscli/cmd/sscli/internal/serve"
	"github.com/sscli/sscli/cmd/sscli/internal/shell"
	"github.com/sscli/sscli/cmd/sscli/internal/top"
	"github.com/sscli/sscli/cmd/sscli/internal/transfer"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/cmd/sscli/internal/watch"
	"github.com/sscli/sscli/cmd/sscli/internal/why"
)

// table is the one table of commands: the parser, the shell, help, completion and the
// manual pages are made from it. The most used come first, in each group of help.
func table() []cli.Command {
	return []cli.Command{
		verb.Command("get"),
		verb.Command("set"),
		verb.Command("del"),
		{Name: "watch", New: watch.New},
		verb.Command("scan"),
		{Name: "lock", New: lock.New},
		verb.Command("vdel"),
		{Name: "edit", New: edit.New},
		{Name: "export", New: transfer.NewExport},
		{Name: "import", New: transfer.NewImport},
		{Name: "diff", New: transfer.NewDiff},

		{Name: "top", New: top.New},
		{Name: "explain", New: why.New},
		{Name: "doctor", New: doctor.New},
		{Name: "ping", New: ping.New},
		{Name: "hlc", New: hlc.New},
		verb.Command("call"),
		verb.Command("keynotify"),
		{Name: "bench", New: bench.New},

		{Name: "serve", New: serve.New},
		{Name: "gateway", New: gateway.New},

		{Name: "context", New: contexts.New},
		{Name: "shell", New: shell.New},
		{Name: "batch", New: batch.New},
		{Name: "completion", New: complete.New},
		{Name: "man", New: manual.NewMan},
		{Name: "version", New: manual.NewVersion},
	}
}
