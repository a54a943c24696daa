package process

import (
	"errors"
	"time"
)

// ErrLate means that a command was not started, because it would have had to end at once.
var ErrLate = errors.New("the time to run it is over")

// ErrGuardDied means that a command was killed because its guard died or hung.
var ErrGuardDied = errors.New("its guard has ended")

// EnvGuardLog names a file to which guards append what they are told and what they do, with
// the time. It is for tests that look for a command which outlived its deadline.
const EnvGuardLog = "SSCLI_GUARD_LOG"

// GuardOptions configure a [Guarded] command.
type GuardOptions struct {
	Args []string // the name of the command, then its arguments

	// Grace is the time between TERM and KILL for a command that is stopped before its
	// deadline, and for the processes that a command leaves behind. 0 = none.
	Grace time.Duration

	// Secret is a file that only the command may read; empty = none. The guard removes it
	// after it ended the command, and removes its directory too if sscli died.
	Secret string

	// Suspended is called before sscli is stopped together with its command; nil = not.
	Suspended func()
}

// An End says how a guarded command ended.
type End struct {
	Code   int  // exit status; 128+N for signal N
	Killed bool // the command was ended by Stop or at its deadline
	Left   bool // the command ended by itself and left processes behind, which were ended
}
