// Package watch is the command `sscli watch`: it prints the changes of keys, or runs a
// command for each.
//
//	sscli watch setpoint
//	sscli watch config -- ./reload.sh
//
// [New] builds the command. Events come from client.Session.Watch, which says what a watch
// proves; this package decides when to end, and with which exit code. Commands run one at a
// time, in the order of the events; meanwhile up to --buffer events wait. If standard
// output is closed the watch ends at once.
package watch
