package process

import (
	"errors"
	"time"
)

// ErrLate means that a command was not started, because Stop was called or the time for TERM had
// passed.
var ErrLate = errors.New("too late to start the command")

// ErrGuardDied means that a command was killed because its guard died or hung.
var ErrGuardDied = errors.New("the guard of the command died or hung")

// EnvGuardLog is the environment variable that names a log file. Guards append their orders and
// actions, with the time, to this file. Tests read it to see why a command outlived its deadline.
const EnvGuardLog = "SSCLI_GUARD_LOG"

// GuardOptions configure a [Guarded] command.
type GuardOptions struct {
	Args []string // the name of the command, then its arguments

	// Grace is the time between TERM and KILL after Stop, and also for processes that the command
	// leaves behind. 0 = KILL follows TERM immediately.
	Grace time.Duration

	// Secret is the path of a file that only the command may read; empty = none. The file and
	// its directory need not exist yet. The guard removes the file when it has ended the
	// command, and the directory after Close or when sscli has died.
	Secret string

	// Suspended is called before sscli is stopped together with its command. It may be nil.
	Suspended func()
}

// An End describes how a guarded command ended.
type End struct {
	Code   int  // exit status; 128+N for signal N
	Killed bool // Stop or the deadline ended the command
	Left   bool // the command ended by itself, and the guard ended the processes that it left behind
}

// guardName is argv[0] of a guard.
const guardName = "sscli-guard"

const (
	// clockInterval is how often the guard and sscli read the clocks while the command runs. A
	// timer would not count the time that the machine sleeps.
	clockInterval = 100 * time.Millisecond

	// noDeadline is the time left when a command has no deadline.
	noDeadline = 100 * 365 * 24 * time.Hour

	// reapInterval is how often the guard and sscli check whether killed processes are gone.
	reapInterval = 5 * time.Millisecond

	// killTimeout is how long the guard and sscli wait for killed processes to disappear.
	killTimeout = 2 * time.Second
)
