// Package contextcmd is the command `sscli context`: it lists, shows, changes and chooses the named
// connections of package config.
//
// [New] makes the command with its subcommands set, list, use, show and rm. None of them
// connects. Package config reads and writes the file of contexts.
package contextcmd
