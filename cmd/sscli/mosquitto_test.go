package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sscli/sscli/internal/testkit/mosquitto"
)

// scriptMosquitto runs Mosquitto, a broker that is independent of this project.
func scriptMosquitto(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: mosquitto")
	}
	b := mosquitto.Start(mosquittoTester{ts: ts}, "", mosquitto.Anonymous)
	ts.Setenv("SSCLI_URL", "mqtt://"+b.Addresses[0])
}

// haveMosquitto implements the condition [mosquitto].
func haveMosquitto() bool {
	if _, err := exec.LookPath("mosquitto"); err == nil {
		return true
	}
	_, err := os.Stat("/usr/sbin/mosquitto")
	return err == nil
}

// mosquittoTester lets mosquitto.Start report to a script.
type mosquittoTester struct {
	testing.TB // nil = only the methods below are used
	ts         *testscript.TestScript
}

func (t mosquittoTester) Helper()                           {}
func (t mosquittoTester) Fatal(args ...any)                 { t.ts.Fatalf("%v", args) }
func (t mosquittoTester) Fatalf(format string, args ...any) { t.ts.Fatalf(format, args...) }
func (t mosquittoTester) Skipf(format string, args ...any)  { t.ts.Fatalf(format, args...) }
func (t mosquittoTester) Cleanup(f func())                  { t.ts.Defer(f) }

func (t mosquittoTester) TempDir() string {
	dir := filepath.Join(t.ts.Getenv("WORK"), "mosquitto")
	t.ts.Check(os.MkdirAll(dir, 0o700))
	return dir
}
