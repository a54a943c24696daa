//go:build unix

package process

import "golang.org/x/sys/unix"

// A process is a row of the system's process table.
type process struct {
	pid, parent, group, session int
}

// childrenOf returns the children of the process parent. If sameSession is true, it omits children
// that are not in the session of the calling process.
func childrenOf(parent int, table []process, sameSession bool) []int {
	session, _ := unix.Getsid(0) // no error for our own process
	var pids []int
	for _, p := range table {
		if p.parent == parent && (!sameSession || p.session == session) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// descendants returns the descendants of the process root, except processes whose process group is group.
func descendants(root int, table []process, group int) []int {
	tree := map[int]bool{root: true}
	for grown := true; grown; {
		grown = false
		for _, p := range table {
			if tree[p.parent] && !tree[p.pid] {
				tree[p.pid], grown = true, true
			}
		}
	}
	var pids []int
	for _, p := range table {
		if tree[p.pid] && p.pid != root && p.group != group {
			pids = append(pids, p.pid)
		}
	}
	return pids
}
