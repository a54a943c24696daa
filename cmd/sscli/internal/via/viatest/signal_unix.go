//go:build unix

package viatest

import "syscall"

// deleted tells a port-forward that its pod is gone.
const deleted = syscall.SIGUSR1
