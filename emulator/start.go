package emulator

// Tester is the part of testing.TB that [Start] needs. Package testing itself is
// not imported: the emulator is linked into a program.
type Tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
	Logf(format string, args ...any)
}

// Start runs an emulator for a test and closes it when the test ends. Without options it is an
// empty store on a free port of the loopback interface, open to everybody.
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
