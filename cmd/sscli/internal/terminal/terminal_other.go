//go:build !unix

package terminal

// device is the name of the console on Windows.
const device = "CONIN$"

// WatchJob does nothing: there is no job control, and no signal when the terminal is resized.
func WatchJob(chan<- Job) (end func()) { return func() {} }

// Stop does nothing: there is no job control.
func Stop() {}
