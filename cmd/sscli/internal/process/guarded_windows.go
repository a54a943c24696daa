package process

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// codeKilled is the exit code of processes that a guard killed: 128+9, as after KILL on Unix.
const codeKilled = 137

// ending returns the signals that end sscli. Go reports SIGTERM when the console is closing or the
// user's session ends.
func ending() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

func catch(c chan<- os.Signal, signals ...os.Signal) { signal.Notify(c, signals...) }

// passPipes passes the pipes to a guard, with their handles as the guard's first arguments. The
// guard leads its own process group, so that Ctrl-C for sscli's group does not reach the guard.
func passPipes(guard *exec.Cmd, orders, events *os.File) (copies []*os.File, err error) {
	guard.Args = []string{guardName}
	var handles []syscall.Handle
	for _, f := range []*os.File{orders, events} {
		err = errors.Join(err, windows.SetHandleInformation(windows.Handle(f.Fd()), windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT))
		handles = append(handles, syscall.Handle(f.Fd()))
		guard.Args = append(guard.Args, strconv.FormatUint(uint64(f.Fd()), 10))
	}
	guard.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, AdditionalInheritedHandles: handles}
	return nil, err
}

func executable() (string, error) { return os.Executable() }

// A control holds what sscli knows about a command. The command's job belongs to the guard.
type control struct{ pid int }

func (g *Guarded) prepareRun(*start) (end func()) { return func() {} }

// forward makes the guard send Ctrl-Break to the command.
func (g *Guarded) forward(s os.Signal) { g.send(order{Signal: s.(syscall.Signal)}) }

// suspend does nothing, because Windows does not stop commands.
func (*Guarded) suspend(syscall.Signal) {}

// killGroup does nothing, because the job ended with the guard.
func killGroup(int) {}

// killCommand does nothing, because only the guard can end the job.
func (*Guarded) killCommand() {}

// killAll does nothing, because the job ended with the guard.
func (*Guarded) killAll() {}
