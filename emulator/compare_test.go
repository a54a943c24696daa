package emulator_test

import (
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
)

// TestLargeValuesCompared: VDEL and NEX tell large values apart, however they are compared.
func TestLargeValuesCompared(t *testing.T) {
	t.Parallel()
	s, c := startWithRedis(t, emulator.Options{})
	m := connect(t, s, "m")
	value := strings.Repeat("v", 3<<20)
	other := value[1:] + "x"
	m.do("SET k "+value, "+OK")
	m.do("SET k "+other+" NEX", ":-1")
	m.do("SET k "+value+" NEX", "+OK")
	m.do("VDEL k "+other, ":-1")
	m.do("VDEL k "+value, ":1")
	m.do("VDEL k "+value, ":0")
	c.Expect(t, "+OK\r\n", "SET", "k", value)
	c.Expect(t, ":0\r\n", "DELIFEQ", "k", other)
	c.Expect(t, ":-1\r\n", "SS.VDEL", "k", other)
	if got := c.Do(t, "SS.SET", "k", other, "NEX"); !strings.HasPrefix(got, "*2\r\n:-1\r\n") {
		t.Errorf("NEX with another value: %.100q", got)
	}
	if got := c.Do(t, "SS.SET", "k", value, "NEX"); !strings.HasPrefix(got, "*2\r\n+OK\r\n") {
		t.Errorf("NEX with the same value: %.100q", got)
	}
	c.Expect(t, ":1\r\n", "DELIFEQ", "k", value)
	c.Expect(t, "+OK\r\n", "SET", "k", value)
	c.Expect(t, ":1\r\n", "SS.VDEL", "k", value)
}
