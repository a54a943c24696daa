// Package contextcmd has the command `sscli context`, which lists, shows, changes and chooses the
// named connections of package config.
//
// [New] makes the command with its subcommands set, list, use, show and rm. None of them
// connects. Package config owns the file of contexts; here are only flags, help and output.
package contextcmd
