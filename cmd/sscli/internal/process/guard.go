package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/signals"
)

// ErrLate is a command that was not started because the time to begin ending it
// had come.
var ErrLate = errors.New("the time to run it is over")

// ErrGuardDied is a command that was killed because nobody guarded it any more.
var ErrGuardDied = errors.New("its guard has ended")

// EnvGuardLog names a file to which guards append what they are told, what they do, and
// when: for tests that look for a command which outlived its limit.
const EnvGuardLog = "SSCLI_GUARD_LOG"

// GuardOptions go with a [Guarded] command.
type GuardOptions struct {
	// Args are the command, at least its name.
	Args []string

	// Grace is the time between TERM and KILL for a command that is told to end
	// before its limit, and for what a command leaves behind. 0 = none.
	Grace time.Duration

	// Secret is a file that holds something for the command alone; empty = none.
	// It is removed when the command had to end, and its directory too if sscli can
	// no longer do that.
	Secret string

	// Suspended is called when sscli is about to be stopped together with its
	// command, and Resumed when both run again.
	Suspended, Resumed func()
}

// An End is how a guarded command ended.
type End struct {
	Code int // exit status, 128+N for signal N

	// Killed tells that the command was ended: it was told to, or its limit came.
	Killed bool

	// Left reports that the command ended by itself and had left processes behind.
	// They were ended too.
	Left bool
}

// interrupted returns the error of a signal that came before the command was started.
func interrupted(s os.Signal) error { return &signals.Interrupted{Signal: s.(syscall.Signal)} }

// find returns the path of a program. The error is a *[StartError].
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", &StartError{name, startCode(err), plain(err)}
	}
	return path, nil
}

// sscli and the guard send each other lines of words.

func appendLine(b []byte, words ...string) []byte {
	for i, w := range words {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendQuote(b, w)
	}
	return append(b, '\n')
}

func parseLine(line string) ([]string, error) {
	rest, whole := strings.CutSuffix(line, "\n")
	if !whole {
		return nil, errors.New("want a whole line")
	}
	var words []string
	for rest != "" || len(words) == 0 {
		if len(words) > 0 {
			var ok bool
			if rest, ok = strings.CutPrefix(rest, " "); !ok {
				return nil, fmt.Errorf("word %d: want a blank between two words", len(words)+1)
			}
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil || quoted[0] != '"' {
			return nil, fmt.Errorf("word %d: want it in double quotes", len(words)+1)
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("word %d: %w", len(words)+1, err)
		}
		words, rest = append(words, word), rest[len(quoted):]
	}
	return words, nil
}
