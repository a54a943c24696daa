//go:build unix && (!linux || race)

package socket

import "syscall"

// What the race detector knows of the order of reads and writes, it knows from these calls.

func read(fd uintptr, p []byte, _ bool) (int, error) { return syscall.Read(int(fd), p) }

func write(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }
