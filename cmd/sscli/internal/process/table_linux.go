package process

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// sharedClock is a clock that all processes share. It keeps running while the machine sleeps.
const sharedClock = unix.CLOCK_BOOTTIME

// adoptOrphans makes this process the parent of its orphaned descendants, so that it finds
// them in any group or session. on = false ends that.
func adoptOrphans(on bool) {
	var arg uintptr
	if on {
		arg = 1
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, arg, 0, 0, 0) // since Linux 3.4
}

// dieWithParent makes the kernel kill the command when its guard is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// listProcesses reads the process table. It leaves out processes that it cannot read.
func listProcesses() []process {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var table []process
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// PID (NAME) STATE PARENT GROUP SESSION …; NAME may contain any character.
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
		table = append(table, p)
	}
	return table
}
