//go:build unix && (!linux || race)

package socket

import "syscall"

// The race detector learns the order of reads and writes from these calls.

func read(fd uintptr, p []byte, _ bool) (int, error) { return syscall.Read(int(fd), p) }

func write(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }
