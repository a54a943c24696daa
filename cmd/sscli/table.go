package main

import (
	"github.com/sscli/sscli/cmd/sscli/internal/batch"
	"github.com/sscli/sscli/cmd/sscli/internal/bench"
	"github.com/sscli/sscli/cmd/sscli/internal/cli"
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
// manual pages are made from it.
func table() []cli.Command {
	return append(verb.Commands(), []cli.Command{
		{Name: "watch", New: watch.New},
		{Name: "top", New: top.New},
		{Name: "lock", New: lock.New},
		{Name: "edit", New: edit.New},
		{Name: "export", New: transfer.NewExport},
		{Name: "import", New: transfer.NewImport},
		{Name: "diff", New: transfer.NewDiff},
		{Name: "explain", New: why.New},
		{Name: "ping", New: ping.New},
		{Name: "doctor", New: doctor.New},
		{Name: "bench", New: bench.New},
		{Name: "hlc", New: hlc.New},
		{Name: "batch", New: batch.New},
		{Name: "shell", New: shell.New},
		{Name: "serve", New: serve.New},
		{Name: "gateway", New: gateway.New},
		{Name: "context", New: contexts.New},
		{Name: "man", New: manual.NewMan},
		{Name: "version", New: manual.NewVersion},
	}...)
}
