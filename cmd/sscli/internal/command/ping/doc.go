// Package ping measures round trips to the store, for `sscli ping`, for a batch, and for doctor.
//
// [New] makes the command, which connects. [Over] makes it for a session that exists. [Summary]
// is the statistics of any list of round trips.
//
// A round trip is a GET of [Key]. It includes the broker and the store, but not the connection.
package ping
