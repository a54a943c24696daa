//go:build unix

package process

import "os"

// initPid is the process id of the first process of a container.
const initPid = 1

// InitMain runs this command line again in a child process and returns the child's exit status, if this
// is the first process of a container. Call it first in main. Otherwise, or if the program's file cannot
// be found, ok is false.
//
// The first process of a container differs from all others: the kernel discards signals that it does not
// catch, even those that it sends to itself, and it must wait for the orphans of the container. In the
// child, sscli works as everywhere else. The first process forwards signals to it and waits for orphans.
func InitMain() (code int, ok bool) {
	if os.Getpid() != initPid {
		return 0, false
	}
	path, err := executable()
	if err != nil {
		return 0, false
	}
	code, err = NewRunner().run(path, Command{Args: os.Args})
	return code, err == nil
}
