package emulator

// Tester has the methods of testing.TB that [Start] uses. This package does not import testing, so
// that the sscli binary, which includes the emulator, does not include testing.
type Tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
	Logf(format string, args ...any)
}

// Start runs an emulator for a test and closes it when the test ends. Without options, the emulator
// is empty, listens on a free port of the loopback interface and accepts all clients.
func Start(t Tester, opts ...Options) *Server {
	t.Helper()
	var o Options
	switch len(opts) {
	case 0:
	case 1:
		o = opts[0]
	default:
		t.Fatalf("start emulator: expected at most one Options, got %d", len(opts))
	}
	o.Changes = true
	s, err := New(o)
	if err != nil {
		t.Fatalf("start emulator: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Logf("close emulator: %v", err)
		}
	})
	return s
}
