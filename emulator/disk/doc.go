// Package disk keeps the records of a state store in one file, which survives a crash of
// the process and of the machine.
//
// [Open] locks the file, reads it and passes each record to its caller. [File.Commit] writes
// the changes of a [Batch]: all of them are in the file, and on the disk, when it returns, or
// none of them are in the file when it is opened next. [Check] reads a file that may be
// damaged, and [Salvage] copies its undamaged records.
//
// Promised: committed changes survive a crash, provided that the disk keeps what it confirmed
// (fsync). A checksum reveals a record that was altered, and a damaged file is not opened. Not
// promised: access by more than one process at a time. The file never shrinks, but freed space
// is reused.
//
// The file is a bbolt database with these buckets:
//
//	sscli  format  the version of this layout, a decimal number
//	       clock   a record: no version of the store has a later wall clock (decimal, ms)
//	       count   a record: the number of records in keys and long
//	keys   a record for each key, see appendRecord
//	long   the same for keys that are too long for bbolt, by their SHA-256
package disk
