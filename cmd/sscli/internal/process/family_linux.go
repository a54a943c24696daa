package process

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// adopt makes the orphans of the command, and of what it starts, children of this
// process, so that none is lost, whichever group or session it went to.
func adopt(on bool) {
	var arg uintptr
	if on {
		arg = 1
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, arg, 0, 0, 0) // since Linux 3.4
}

// dieWithParent has the system kill the command if its guard is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// processes lists what runs; what cannot be read is left out.
func processes() []process {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var list []process
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// PID (NAME) STATE PARENT GROUP SESSION …; a name may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 4 {
			continue
		}
		p := process{pid: pid}
		for i, to := range []*int{&p.parent, &p.group, &p.session} {
			if *to, err = strconv.Atoi(string(fields[i+1])); err != nil {
				break
			}
		}
		list = append(list, p)
	}
	return list
}
