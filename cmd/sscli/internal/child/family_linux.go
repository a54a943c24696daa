package child

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

// A process is what /proc says of one.
type process struct {
	pid, parent, group, session int
}

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

// adopted lists our children; only we take their ids back, so that they cannot be
// others' before. With ours, those in other sessions are left out.
func adopted(ours bool) []int {
	session, err := unix.Getsid(0)
	var list []int
	for _, p := range processes() {
		if p.parent == os.Getpid() && !(ours && err == nil && p.session != session) {
			list = append(list, p.pid)
		}
	}
	return list
}

// orphansOf lists the children of a guard and what became ours when it ended. Those in
// other sessions are left out: who is the first process of a container gets orphans of
// others too.
func orphansOf(guard int) []int {
	session, err := unix.Getsid(0)
	var list []int
	for _, p := range processes() {
		if p.parent == guard || p.parent == os.Getpid() && p.pid != guard && err == nil && p.session == session {
			list = append(list, p.pid)
		}
	}
	return list
}

// descendants lists what a command has started that is not in its group.
func descendants(command int) []int {
	all := processes()
	family := map[int]bool{os.Getpid(): true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if family[p.parent] && !family[p.pid] {
				family[p.pid], grown = true, true
			}
		}
	}
	var list []int
	for _, p := range all {
		if family[p.pid] && p.pid != os.Getpid() && p.group != command {
			list = append(list, p.pid)
		}
	}
	return list
}
