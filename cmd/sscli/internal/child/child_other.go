//go:build !unix

package child

import (
	"errors"
	"os"
	"os/exec"
)

var errNotExecutable = errors.ErrUnsupported

func passedOn() []os.Signal { return []os.Signal{os.Interrupt} }

func own(*exec.Cmd) (giveBack func()) { return func() {} }

// pass asks the command to end. Windows delivers an interrupt from the console
// to every process on it, so the command has it already.
func pass(p *os.Process, s os.Signal) { _ = p.Signal(s) }

func status(state *os.ProcessState) int { return state.ExitCode() }
