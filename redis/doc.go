// Package redis is a Redis port in front of a state store: a RESP2 and RESP3 server with
// the commands for strings, pub/sub and keyspace notifications. It knows no store but
// through [Backend].
//
// Begin with [New]:
//
//	srv := redis.New(redis.Options{Backend: backend})
//	go srv.Serve(listener)
//	defer srv.Close()
//
// There are two sorts of backends. An [Engine] is in this process: each command, each
// transaction and each short run of a pipeline is one step, and a command does all that it
// does in Redis. Any other Backend is a store on the other side of a network, where a step
// is what the store's own protocol can do. Commands that need more are refused with a
// reply that says why.
//
// A backend reports changes with [Server.Changed], its own gaps with [Server.Lost].
//
// The messages of pub/sub are sent once. A subscriber that reads too slowly is
// disconnected: the protocol has no other sign of loss.
package redis
