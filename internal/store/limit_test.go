package store

import "testing"

// TestLongestValue: a value that is too long for MQTT is refused, whoever writes it.
func TestLongestValue(t *testing.T) {
	s := New(Options{})
	value := make([]byte, maxValue+1)
	if got := s.Apply(Write{Key: []byte("k"), Value: value}); got != textLongValue {
		t.Errorf("Apply: %q", got)
	}
	words := [][]byte{[]byte("SET"), []byte("k"), value}
	if got := s.Do(&Request{Words: words, Timestamp: []byte("1:0:c")}, nil); string(got.Payload) != "-ERR "+textLongValue+"\r\n" {
		t.Errorf("SET: %q", got.Payload)
	}
}
