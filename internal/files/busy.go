package files

import "os"

// Open is [os.Open], and [RetryBusy] calls it: another process may be replacing the file.
func Open(name string) (f *os.File, err error) {
	err = RetryBusy(func() error {
		f, err = os.Open(name)
		return err
	})
	return f, err
}
