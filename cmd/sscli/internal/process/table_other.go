//go:build unix && !linux

package process

import "syscall"

// Only Linux can find processes that have left the command's group.

func adoptOrphans(bool) {}

func dieWithParent(*syscall.SysProcAttr) {}

func listProcesses() []process { return nil }
