package main

import (
	"slices"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/command/apply"
	"github.com/sscli/sscli/cmd/sscli/internal/command/basics"
	"github.com/sscli/sscli/cmd/sscli/internal/command/batch"
	"github.com/sscli/sscli/cmd/sscli/internal/command/bench"
	"github.com/sscli/sscli/cmd/sscli/internal/command/check"
	"github.com/sscli/sscli/cmd/sscli/internal/command/cluster"
	"github.com/sscli/sscli/cmd/sscli/internal/command/contextcmd"
	"github.com/sscli/sscli/cmd/sscli/internal/command/datasetcmd"
	"github.com/sscli/sscli/cmd/sscli/internal/command/diff"
	"github.com/sscli/sscli/cmd/sscli/internal/command/doctor"
	"github.com/sscli/sscli/cmd/sscli/internal/command/edit"
	"github.com/sscli/sscli/cmd/sscli/internal/command/explain"
	"github.com/sscli/sscli/cmd/sscli/internal/command/export"
	"github.com/sscli/sscli/cmd/sscli/internal/command/gateway"
	"github.com/sscli/sscli/cmd/sscli/internal/command/hlc"
	"github.com/sscli/sscli/cmd/sscli/internal/command/importcmd"
	"github.com/sscli/sscli/cmd/sscli/internal/command/lock"
	"github.com/sscli/sscli/cmd/sscli/internal/command/ping"
	"github.com/sscli/sscli/cmd/sscli/internal/command/policycmd"
	"github.com/sscli/sscli/cmd/sscli/internal/command/self"
	"github.com/sscli/sscli/cmd/sscli/internal/command/serve"
	"github.com/sscli/sscli/cmd/sscli/internal/command/shell"
	"github.com/sscli/sscli/cmd/sscli/internal/command/top"
	"github.com/sscli/sscli/cmd/sscli/internal/command/watch"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
)

// table returns the command table, from which the parser, the shell, help, completion and the manual
// pages are built. In each group of help, the most used commands come first.
func table() []app.Command {
	return slices.Concat(rows(basics.Store()), []app.Command{
		{Name: "watch", New: watch.New},
		{Name: "lock", New: lock.New},
		{Name: "context", New: contextcmd.New},
		{Name: "shell", New: shell.New},
		{Name: "batch", New: batch.New},
		{Name: "doctor", New: doctor.New},
		{Name: "serve", New: serve.New},

		{Name: "edit", New: edit.New},
		{Name: "export", New: export.New},
		{Name: "import", New: importcmd.New},
		{Name: "diff", New: diff.New},
		{Name: "apply", New: apply.New},
		{Name: "dataset", New: datasetcmd.New},

		{Name: "top", New: top.New},
		{Name: "explain", New: explain.New},
		{Name: "check", New: check.New},
		{Name: "ping", New: ping.New},
		{Name: "hlc", New: hlc.New},
		{Name: "policy", New: policycmd.New},
		{Name: "bench", New: bench.New},
	}, rows(basics.Diagnostics()), []app.Command{

		{Name: "forward", New: cluster.NewForward},
		{Name: "pod", New: cluster.NewPod},
		{Name: "gateway", New: gateway.New},

		{Name: "completion", New: self.NewCompletion},
		{Name: "man", New: self.NewMan},
		{Name: "version", New: self.NewVersion},
	})
}

func rows(all []basics.Row) (rows []app.Command) {
	for _, v := range all {
		rows = append(rows, app.Command{Name: v.Name, New: verb.Command(v.New)})
	}
	return rows
}
