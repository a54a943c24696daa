package self

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
)

// NewCompletion returns the command `sscli completion`.
func NewCompletion(a *app.App) *cobra.Command {
	return app.WithCommands(&cobra.Command{
		Use:         "completion",
		Short:       "Write the completions for a shell",
		GroupID:     app.GroupMore,
		Annotations: map[string]string{app.Offline: ""},
		Long: `Write the script that lets a shell complete the commands, flags, contexts and keys of
sscli. Packages already install the scripts.`,
		Example: "  . <(sscli completion bash)\n  sscli completion fish | source",
	}, script(a, "bash", `The script works with the package bash-completion and without it. Without it, ~/.bashrc
must run the script.`,
		"  . <(sscli completion bash)                # for this shell\n"+
			"  mkdir -p ~/.local/share/bash-completion/completions\n"+
			"  sscli completion bash > ~/.local/share/bash-completion/completions/sscli", (*cobra.Command).GenBashCompletionV2),
		script(a, "zsh", `The script must be in a directory of fpath, and ~/.zshrc must call compinit: before that, it
needs fpath+=~/.zfunc.`,
			"  . <(sscli completion zsh)                 # for this shell\n"+
				"  mkdir -p ~/.zfunc && sscli completion zsh > ~/.zfunc/_sscli", zsh),
		script(a, "fish", "",
			"  sscli completion fish | source            # for this shell\n"+
				"  mkdir -p ~/.config/fish/completions\n"+
				"  sscli completion fish > ~/.config/fish/completions/sscli.fish", (*cobra.Command).GenFishCompletion),
		script(a, "powershell", `To load the script in every session, add it to the profile. Keys that PowerShell would
have to quote are not completed.`,
			"  sscli completion powershell | Out-String | Invoke-Expression", powershell))
}

// A writer writes the completions of a command for a shell, with or without descriptions.
type writer func(root *cobra.Command, w io.Writer, descriptions bool) error

func zsh(root *cobra.Command, w io.Writer, descriptions bool) error {
	if descriptions {
		return root.GenZshCompletion(w)
	}
	return root.GenZshCompletionNoDesc(w)
}

func powershell(root *cobra.Command, w io.Writer, descriptions bool) error {
	if descriptions {
		return root.GenPowerShellCompletionWithDesc(w)
	}
	return root.GenPowerShellCompletion(w)
}

func script(a *app.App, shell, more, example string, write writer) *cobra.Command {
	var bare bool
	cmd := &cobra.Command{
		Use:     shell,
		Short:   "Write the completions for " + shell,
		Long:    strings.TrimSpace("Write the completions for " + shell + ".\n\n" + more),
		Example: example,
		Args:    usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var text bytes.Buffer
			if err := write(cmd.Root(), &text, !bare); err != nil {
				return err
			}
			script, err := safe(shell, text.String())
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.Stdout, script)
			return fault.Output(err)
		},
	}
	cmd.Flags().BoolVar(&bare, "no-descriptions", false, "complete without descriptions")
	return cmd
}

// safe returns cobra's script for a shell, changed so that the candidates are quoted when they are
// inserted: a key may be any text, which the shell must not evaluate. The script sets
// complete.QuotesVariable, so that sscli also offers keys that need quotes. For PowerShell, safe
// changes nothing, and sscli offers only keys that need no quotes.
func safe(shell, script string) (string, error) {
	for _, change := range changes(shell) {
		if n := strings.Count(script, change[0]); n != 1 {
			return "", fmt.Errorf("completion for %s: the script has %d of the line %q, expected 1", shell, n, change[0])
		}
		script = strings.Replace(script, change[0], change[1], 1)
	}
	return script, nil
}

//go:embed completions.txt
var changesText string

func part(name string) string {
	_, text, _ := strings.Cut(changesText, "\n### "+name+"\n")
	text, _, _ = strings.Cut(text, "\n### ")
	return text
}

// changes returns the texts to replace in cobra's script for a shell, each with its replacement.
func changes(shell string) (all [][2]string) {
	for _, block := range strings.Split(part(shell), "<<<\n")[1:] {
		block, _, _ = strings.Cut(block, ">>>\n")
		old, replacement, lines := strings.Cut(block, "===\n")
		if !lines {
			old, replacement, _ = strings.Cut(block, "\n---\n")
			replacement = strings.TrimSuffix(replacement, "\n")
		}
		all = append(all, [2]string{old, strings.ReplaceAll(replacement, "@runs\n", part("runs"))})
	}
	return all
}
