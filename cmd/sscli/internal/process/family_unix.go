//go:build unix

package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// A process is a row of the system's process table.
type process struct {
	pid, parent, group, session int
}

// adopted lists the children of this process in a table; only this process collects
// their ids, so that they cannot be another's before. With sameSession, those in other
// sessions are left out.
func adopted(table []process, sameSession bool) []int {
	session, err := unix.Getsid(0)
	var list []int
	for _, p := range table {
		if p.parent == os.Getpid() && !(sameSession && err == nil && p.session != session) {
			list = append(list, p.pid)
		}
	}
	return list
}

// orphansOf lists the children of a guard, and what became this process's child when
// the guard ended. Those in other sessions are left out: the first process of a
// container gets orphans of others too.
func orphansOf(table []process, guard int) []int {
	session, err := unix.Getsid(0)
	var list []int
	for _, p := range table {
		if p.parent == guard || p.parent == os.Getpid() && p.pid != guard && err == nil && p.session == session {
			list = append(list, p.pid)
		}
	}
	return list
}

// descendants lists what a command has started that is not in its group.
func descendants(table []process, command int) []int {
	family := map[int]bool{os.Getpid(): true}
	for grown := true; grown; {
		grown = false
		for _, p := range table {
			if family[p.parent] && !family[p.pid] {
				family[p.pid], grown = true, true
			}
		}
	}
	var list []int
	for _, p := range table {
		if family[p.pid] && p.pid != os.Getpid() && p.group != command {
			list = append(list, p.pid)
		}
	}
	return list
}
