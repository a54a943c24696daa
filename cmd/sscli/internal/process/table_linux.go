package process

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// sharedClock is a clock that reads the same in all processes. It keeps running while the machine
// sleeps.
const sharedClock = unix.CLOCK_BOOTTIME

// adoptOrphans makes this process the parent of its orphaned descendants, so that it finds
// them in any group or session. adoptOrphans(false) ends this.
func adoptOrphans(on bool) {
	var arg uintptr
	if on {
		arg = 1
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, arg, 0, 0, 0) // since Linux 3.4
}

// dieWithParent makes the kernel kill the command when its guard is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// hasTable reports whether the process table of /proc has the process ids that this process sees. It
// has not if /proc is not mounted, or in a PID namespace with the /proc of another one.
func hasTable() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
}

// hasParent reports whether pid is a child of parent. The child may be a zombie. Without a process table
// it returns true.
func hasParent(pid, parent int) bool {
	if !hasTable() {
		return true
	}
	p, ok := readProcess(pid)
	return ok && p.parent == parent
}

// listProcesses reads the process table. It leaves out processes that it cannot read.
func listProcesses() []process {
	if !hasTable() {
		return nil
	}
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
		if p, ok := readProcess(pid); ok {
			table = append(table, p)
		}
	}
	return table
}

// readProcess reads the row of one process from /proc. ok is false if there is no such process.
func readProcess(pid int) (p process, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	// PID (NAME) STATE PARENT GROUP SESSION …; NAME may contain any character.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 4 {
		return p, false
	}
	p.pid = pid
	for i, to := range []*int{&p.parent, &p.group, &p.session} {
		if *to, err = strconv.Atoi(string(fields[i+1])); err != nil {
			return p, false
		}
	}
	return p, true
}
