//go:build !windows

package main

// lockChild returns false: only Windows needs a program as the command of TestLockChaos.
func lockChild() bool { return false }
