// Package hlc has the command `sscli hlc`, which prints, parses and compares versions and fencing
// tokens without a broker.
//
// [New] makes the command. Package wire knows the format.
package hlc
