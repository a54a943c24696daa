// Package disk keeps the records of a state store in one file, which survives a crash of
// the process and of the machine.
//
// [Open] locks the file, reads it and passes each record to a callback. [File.Commit] writes
// the changes of a [Batch] atomically: when Commit has succeeded, all changes are on the disk; after a
// crash during Commit, the file has all of them or none. [Check] reads a file that may be damaged, and
// [Salvage] copies the undamaged records to a new file.
//
// Committed changes survive a crash if the disk keeps all data for which fsync has returned success.
// Checksums detect altered records, and Open refuses a damaged file. Only one process at a time
// can use the file. Freed space is reused. Open compacts a file that is mostly empty, except on Windows.
//
// The file is a bbolt database with these buckets:
//
//	sscli  format  the version of this layout, a decimal number
//	       clock   a record: upper limit of the wall clocks in versions (decimal, ms)
//	       count   a record: the number of records in keys and long
//	keys   a record for each key, see appendRecord
//	long   a record for each key that is too long for bbolt, under the key's SHA-256
package disk
