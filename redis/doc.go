// Package redis is a Redis port in front of a state store: a RESP2 and RESP3 server with
// the commands for strings, pub/sub and keyspace notifications. It reaches the store only
// through a [Backend].
//
// Begin with [New]:
//
//	srv, err := redis.New(redis.Options{Backend: backend})
//	…
//	srv.Serve(listener)
//	defer srv.Close()
//
// A command puts operations of the store's own protocol ([Op]) to the backend. A backend in this
// process is a [Local] one: the server locks it, so that a command, a transaction or a short run
// of a pipeline is one atomic step, and every command does what it does in Redis. Any other
// backend is a remote store; commands that need more than its protocol offers are refused with a
// reply that says why.
//
// A backend reports changes with [Server.Changed], and changes that it may have missed with
// [Server.Lost].
//
// Messages of pub/sub are sent once. A subscriber that reads too slowly is disconnected,
// because the protocol has no other sign of loss.
package redis
