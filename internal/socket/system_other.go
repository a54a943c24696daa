//go:build unix && (!linux || race)

package socket

import "syscall"

// Systems other than Linux use these calls. Builds with the race detector use them too, because
// package syscall reports the order of reads and writes to the detector.

func read(fd uintptr, p []byte, _ bool) (int, error) { return syscall.Read(int(fd), p) }

func write(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }
