package main

import (
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/command/apply"
	"github.com/sscli/sscli/cmd/sscli/internal/command/batch"
	"github.com/sscli/sscli/cmd/sscli/internal/command/bench"
	"github.com/sscli/sscli/cmd/sscli/internal/command/call"
	"github.com/sscli/sscli/cmd/sscli/internal/command/completion"
	"github.com/sscli/sscli/cmd/sscli/internal/command/contextcmd"
	"github.com/sscli/sscli/cmd/sscli/internal/command/datasetcmd"
	"github.com/sscli/sscli/cmd/sscli/internal/command/del"
	"github.com/sscli/sscli/cmd/sscli/internal/command/diff"
	"github.com/sscli/sscli/cmd/sscli/internal/command/doctor"
	"github.com/sscli/sscli/cmd/sscli/internal/command/edit"
	"github.com/sscli/sscli/cmd/sscli/internal/command/explain"
	"github.com/sscli/sscli/cmd/sscli/internal/command/export"
	"github.com/sscli/sscli/cmd/sscli/internal/command/forward"
	"github.com/sscli/sscli/cmd/sscli/internal/command/gateway"
	"github.com/sscli/sscli/cmd/sscli/internal/command/get"
	"github.com/sscli/sscli/cmd/sscli/internal/command/hlc"
	"github.com/sscli/sscli/cmd/sscli/internal/command/importcmd"
	"github.com/sscli/sscli/cmd/sscli/internal/command/keynotify"
	"github.com/sscli/sscli/cmd/sscli/internal/command/lock"
	"github.com/sscli/sscli/cmd/sscli/internal/command/man"
	"github.com/sscli/sscli/cmd/sscli/internal/command/ping"
	"github.com/sscli/sscli/cmd/sscli/internal/command/pod"
	"github.com/sscli/sscli/cmd/sscli/internal/command/scan"
	"github.com/sscli/sscli/cmd/sscli/internal/command/serve"
	"github.com/sscli/sscli/cmd/sscli/internal/command/set"
	"github.com/sscli/sscli/cmd/sscli/internal/command/shell"
	"github.com/sscli/sscli/cmd/sscli/internal/command/top"
	"github.com/sscli/sscli/cmd/sscli/internal/command/vdel"
	"github.com/sscli/sscli/cmd/sscli/internal/command/version"
	"github.com/sscli/sscli/cmd/sscli/internal/command/watch"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
)

// table returns the command table, from which the parser, the shell, help, completion and the manual
// pages are built. In each group of help, the most used commands come first.
func table() []app.Command {
	return []app.Command{
		{Name: "get", New: verb.Command(get.New)},
		{Name: "set", New: verb.Command(set.New)},
		{Name: "del", New: verb.Command(del.New)},
		{Name: "watch", New: watch.New},
		{Name: "scan", New: verb.Command(scan.New)},
		{Name: "lock", New: lock.New},
		{Name: "vdel", New: verb.Command(vdel.New)},
		{Name: "edit", New: edit.New},
		{Name: "export", New: export.New},
		{Name: "import", New: importcmd.New},
		{Name: "diff", New: diff.New},
		{Name: "apply", New: apply.New},
		{Name: "dataset", New: datasetcmd.New},

		{Name: "top", New: top.New},
		{Name: "explain", New: explain.New},
		{Name: "doctor", New: doctor.New},
		{Name: "ping", New: ping.New},
		{Name: "hlc", New: hlc.New},
		{Name: "call", New: verb.Command(call.New)},
		{Name: "keynotify", New: verb.Command(keynotify.New)},
		{Name: "bench", New: bench.New},

		{Name: "serve", New: serve.New},
		{Name: "forward", New: forward.New},
		{Name: "pod", New: pod.New},
		{Name: "gateway", New: gateway.New},

		{Name: "context", New: contextcmd.New},
		{Name: "shell", New: shell.New},
		{Name: "batch", New: batch.New},
		{Name: "completion", New: completion.New},
		{Name: "man", New: man.New},
		{Name: "version", New: version.New},
	}
}
