// Package top is the command `sscli top`: a table of keys that changes as they do.
//
//	sscli top
//	sscli top 'thermostat/*' setpoint
//
// [New] builds the command. A [model] is all that is known and how the user looks at it: events
// and keys change it, and [model.view] makes lines of it for a terminal of any size. Neither
// knows a network or a terminal. [screen] draws lines; run connects the three with a session.
//
// Changes come from client.Session.Watch. New keys come from a scan every few seconds: the
// store does not notify of keys that nobody knows.
package top
