package help

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A flag of a command that has the name of a flag of all commands, with another meaning, is the command's.
func TestOwnFlags(t *testing.T) {
	root := &cobra.Command{Use: "sscli"}
	root.PersistentFlags().Bool("trace", false, "print every packet")
	root.PersistentFlags().String("client-id", "", "MQTT client id")
	cmd := &cobra.Command{Use: "suggest", RunE: func(*cobra.Command, []string) error { return nil }}
	cmd.Flags().String("trace", "", "a `FILE`")
	cmd.Flags().String("name", "", "`NAME` of the resource")
	root.AddCommand(cmd)
	if err := cmd.ParseFlags(nil); err != nil { // adds the flags of all commands
		t.Fatal(err)
	}

	var got []string
	for _, f := range OwnFlags(cmd) {
		got = append(got, f.Name+" "+f.Usage)
	}
	if len(got) != 2 || got[0] != "trace a `FILE`" || got[1] != "name `NAME` of the resource" {
		t.Errorf("own flags: %q, want trace and name", got)
	}
}

// TestOwnFlagReplacesShared: help lists a flag once: the command's own flag, and not the flag of all commands with the same name.
func TestOwnFlagReplacesShared(t *testing.T) {
	root := &cobra.Command{Use: "sscli"}
	root.PersistentFlags().StringP("output", "o", "", "`FORM` of all commands")
	cmd := &cobra.Command{Use: "show", RunE: func(*cobra.Command, []string) error { return nil }}
	cmd.Flags().StringP("output", "o", "", "`FORM` of show")
	root.AddCommand(cmd)
	if err := cmd.ParseFlags(nil); err != nil {
		t.Fatal(err)
	}

	text := usage(cmd, Width)
	if !strings.Contains(text, "FORM of show") || strings.Count(text, "--output") != 1 {
		t.Errorf("help: %s, want --output once, with the meaning that it has in show", text)
	}
}
