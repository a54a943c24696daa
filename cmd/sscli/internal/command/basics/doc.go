// Package basics has the commands that send requests to the store: get, set, del, vdel, scan and
// call, and the hidden keynotify. Each file is a command, named as the user types it.
package basics

import "github.com/sscli/sscli/cmd/sscli/internal/verb"

// A Row is the name of a verb and its constructor.
type Row struct {
	Name string
	New  func(verb.Env) verb.Verb
}

// Store returns the verbs that read and write keys, the most used first.
func Store() []Row {
	return []Row{{"get", Get}, {"set", Set}, {"del", Del}, {"scan", Scan}, {"vdel", Vdel}}
}

// Diagnostics returns the verbs for tests of the protocol.
func Diagnostics() []Row { return []Row{{"call", Call}, {"keynotify", KeyNotify}} }
