// Package bench puts load on the store and measures it: `sscli bench`.
//
// [New] makes the command. bench.go has its flags and its workers, mix.go the choice of verbs,
// measurement.go the percentiles.
//
// With --rate a latency counts from the time when the request was due and not from when it was
// sent, so that a store which stops for a second is not measured as one slow request. Keys are
// written under one prefix and deleted at the end; they expire in any case.
package bench
