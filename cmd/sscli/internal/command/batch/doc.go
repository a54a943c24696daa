// Package batch runs the lines of a file or of standard input over one connection: `sscli
// batch`, and `sscli -`.
//
// [New] makes the command. A line passes through four files:
//
//   - lines.go reads lines, a little ahead of the one that runs.
//   - parse.go parses a line to a request of a verb, or to something else that a batch can run.
//   - batch.go runs one line after the other, pipeline.go several at a time (--inflight).
//   - summary.go counts what became of the lines, for the exit code and the summary.
//
// Results are printed in the order of the lines. No two requests for one key are under way at a
// time. The first error ends the batch, or not with --keep-going; a "no" is a result. After a
// lost connection each line is reported as applied, refused or unknown. Memory does not grow
// with the input.
package batch
