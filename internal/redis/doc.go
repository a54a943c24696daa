// Package redis is a Redis port in front of a state store: a RESP2 and RESP3 server with
// the commands for strings, pub/sub and keyspace notifications. It uses the store only through a
// [Backend].
//
// Begin with [New]:
//
//	srv, err := redis.New(redis.Options{Backend: backend})
//	…
//	srv.Serve(listener)
//	defer srv.Close()
//
// A command sends operations ([Op]) to the backend. Their verbs are GET, SET, DEL and VDEL, as in the
// state store's own protocol. A backend in this process is a [Local]. The server locks a Local, so that
// a command, a transaction or several commands of a pipeline are one atomic step, as in Redis. Only a
// command with many keys may take several steps. Any other backend is a remote store.
// If a remote store cannot carry out a command, the server replies with an error that gives the reason.
//
// A backend calls [Server.Changed] for each change, and [Server.Lost] if it may have missed changes.
//
// Pub/sub messages are sent at most once. A subscriber that reads too slowly is disconnected,
// because the protocol has no other way to report a loss.
package redis
