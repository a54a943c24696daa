//go:build unix

package viatest

import "syscall"

// deleted is the signal that makes a port-forward end as if its pod was deleted.
const deleted = syscall.SIGUSR1
