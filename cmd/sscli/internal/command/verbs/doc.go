// Package verbs has the commands that send requests to the store: get, set, del, vdel, scan and
// call, and the hidden keynotify. Each file is a command, named as the user types it.
package verbs

import "github.com/sscli/sscli/cmd/sscli/internal/verb"

// Store returns the constructors of the verbs that read and write keys, the most used first.
func Store() []func(verb.Env) verb.Verb { return []func(verb.Env) verb.Verb{Get, Set, Del, Scan, Vdel} }

// Diagnostics returns the constructors of the verbs for tests of the protocol.
func Diagnostics() []func(verb.Env) verb.Verb { return []func(verb.Env) verb.Verb{Call, KeyNotify} }
