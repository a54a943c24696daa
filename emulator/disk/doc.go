// Package disk keeps the records of a state store in one file, which survives a crash of
// the process and of the machine.
//
// [Open] locks the file, reads it and hands over each record. [File.Commit] writes the
// changes of a [Batch]: all of them are in the file, and on the disk, when it returns, or
// none of them are in the file when it is opened next. [Check] reads a file that may be
// damaged.
//
// Promised: what was committed is there after a crash, as far as the disk keeps what it said
// that it has (fsync). A record that was altered is found by its checksum, and a file with
// damage is not opened. Not promised: more than one process at a time, and a file that
// shrinks. Room that was freed is used again.
//
// The file is one of bbolt, with the buckets
//
//	sscli  format   the version of this layout, a decimal number
//	        clock    no version that the store gave has a later wall clock (decimal, ms);
//	                a record
//	        count    how many records keys and long have; a record
//	keys   a record for each key, see appendRecord
//	long   the same for keys that are too long for bbolt, by their SHA-256
package disk
