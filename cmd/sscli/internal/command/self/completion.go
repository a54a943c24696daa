package self

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
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

// changes returns the texts to replace in cobra's script for a shell, each with its replacement.
func changes(shell string) [][2]string {
	const set = complete.QuotesVariable + "=1 "
	// In the shells' arithmetic: the words after -- are a command.
	after := fmt.Sprintf("(directive & %d) != 0", complete.Command)
	const escapes = complete.QuotesVariable + "=" + complete.Escapes + " "
	switch shell {
	case "bash":
		return [][2]string{
			// This function of cobra's script needs the package bash-completion. Its replacement,
			// bashWords, does not.
			{`# Macs have bash3 for which the bash-completion package doesn't include
# _init_completion. This is a minimal version of that function.
__sscli_init_completion()
{
    COMPREPLY=()
    _get_comp_words_by_ref "$@" cur prev words cword
}
`, bashWords + "\n" + runs},
			// Close an open quote, so that eval accepts the line.
			{`    # Use eval to handle any environment variables and such
`, `    # Close a quote that is open, or eval would refuse the line
    if [[ ${cur} == \"* && ${cur:1} != *\"* || ${cur} == \'* && ${cur:1} != *\'* ]]; then
        requestComp+=${cur:0:1}
    fi

    # Use eval to handle any environment variables and such
`},
			// Only a flag has a value after =. Cobra also takes a key for a flag that has a minus in it, or begins
			// with one after --.
			{`    if [[ ${cur} == -*=* ]]; then
`, `    if [[ ${cur} == -*=* ]] && ! __sscli_dashed; then
`},
			{`    requestComp="${words[0]} `, `    requestComp="` + escapes + `${words[0]} `},
			// Tab must not run a command of the line, or open the file of a redirection.
			{`    args=("${words[@]:1}")
`, `    args=()
    for lastParam in "${words[@]:1}"; do
        __sscli_runs "$lastParam" && printf -v lastParam %q "$lastParam"
        args+=("$lastParam")
    done
`},
			{`    if (((directive & shellCompDirectiveError) != 0)); then
`, `    if ((` + after + `)) && __sscli_handle_command; then
        return
    fi
    if (((directive & shellCompDirectiveError) != 0)); then
`},
			// For several candidates, cobra's script inserts their common prefix without quotes.
			// __sscli_handle_quoted adds quotes. It need not filter candidates, because sscli does.
			{`__sscli_handle_completion_types() {
`, `# Completes the words after -- as the shell completes a command.
__sscli_handle_command() {
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] || continue
        [[ $(type -t compopt) == builtin ]] && compopt -o default
        if declare -F _comp_command_offset >/dev/null; then
            _comp_command_offset $((i + 1))
        elif declare -F _command_offset >/dev/null; then
            _command_offset $((i + 1))
        elif ((COMP_CWORD == i + 1)); then
            while IFS='' read -r i; do
                COMPREPLY+=("$i")
            done < <(compgen -c -- "${cur}")
        fi
        return 0
    done
    return 1
}

# Decodes the candidates, and quotes them if one of them needs it. In an open quote readline does it,
# as for files.
__sscli_handle_quoted() {
    local tab=$'\t' comp quote=''
    local -a plain=()
    for comp in "${completions[@]}"; do
        printf -v comp %b "${comp%%$tab*}"
        [[ $comp == *[!a-zA-Z0-9_./:=@%+,-]* ]] && quote=1
        plain+=("$comp")
    done
    [[ $quote ]] || return
    COMPREPLY=()
    [[ ${cur} == [\'\"]* ]] && compopt -o filenames
    for comp in "${plain[@]}"; do
        if [[ ${cur} == [\'\"]* ]]; then
            # In quotes, readline cannot insert a control character
            [[ $comp == *[[:cntrl:]]* ]] || COMPREPLY+=("$comp")
        else
            __sscli_quote "$comp"
            COMPREPLY+=("$comp")
        fi
    done
    return 0
}

# Sets comp to a word, quoted. Control characters are quoted one by one, so that words with a common
# prefix still have one.
__sscli_quote() {
    local rest=$1 part
    comp=''
    while [[ -n $rest ]]; do
        part=${rest%%[[:cntrl:]]*}
        [[ -n $part ]] || part=${rest:0:1}
        rest=${rest:${#part}}
        printf -v part %q "$part"
        comp+=$part
    done
}

__sscli_handle_completion_types() {
    __sscli_handle_quoted && return

`},
		}
	case "zsh":
		return [][2]string{
			{`    # Use eval to handle any environment variables and such
`, `    # Close a quote that is open, or eval would refuse the line
    if [[ -n ${QIPREFIX} && -z ${QISUFFIX} ]]; then
        requestComp="${requestComp}${QIPREFIX[-1]}"
    fi

    # Use eval to handle any environment variables and such
`},
			// Only a flag has a value after =. Cobra also takes a key for a flag that has a minus in it, or begins
			// with one after --.
			{`    if [[ "${lastParam}" =~ '-.*=' ]]; then
`, `    if [[ "${lastParam}" =~ '^-[^=]*=' && ${words[(ie)--]} -ge $#words ]]; then
`},
			{`    requestComp="${words[1]} `, `    requestComp="` + set + `${words[1]} `},
			// Tab must not run a command of the line, or open the file of a redirection.
			{`_sscli()
{
`, runs + `
_sscli()
{
`},
			{`    words=("${=words[1,CURRENT]}")
`, `    local word
    for ((word = 2; word <= CURRENT; word++)); do
        __sscli_runs "${words[word]}" && words[word]=${(q)words[word]}
    done
    words=("${=words[1,CURRENT]}")
`},
			{`    if [ $((directive & shellCompDirectiveError)) -ne 0 ]; then
`, `    # Complete the words after -- as the shell completes a command
    local dashes=${words[(ie)--]}
    if (( ` + after + ` && dashes < $#words )); then
        shift $dashes words
        CURRENT=$#words
        _normal
        return
    fi

    if [ $((directive & shellCompDirectiveError)) -ne 0 ]; then
`},
		}
	case "fish":
		return [][2]string{
			// These words have lost their quotes, so eval would expand them.
			{`    set -l args (commandline -opc)
`, `    set -l args (__sscli_words)
`},
			{`    set -l lastArg (string escape -- (commandline -ct))
`, `    set -l lastArg (string escape -- (__sscli_word))
`},
			// Only a flag has a value after =. Cobra also takes a key for a flag that has a minus in it, or begins
			// with one after --.
			{`    set -l flagPrefix (string match -r -- '-.*=' "$lastArg")
`, `    set -l flagPrefix
    if not contains -- -- $args
        set flagPrefix (string match -r -- '^-[^=]*=' "$lastArg")
    end
`},
			// The candidate may begin with a minus.
			{`(string split --max 1 \t $__sscli_comp_results[1])`, `(string split --max 1 -- \t $__sscli_comp_results[1])`},
			{`    set -l requestComp "SSCLI_ACTIVE_HELP=0 $args[1] `, `    set -l requestComp "SSCLI_ACTIVE_HELP=0 ` + set + `$args[1] `},
			{`    for comp in $comps
`, `    # Complete the words after -- as the shell completes a command
    set -l dashes (contains -i -- -- $args)
    if test -n "$dashes"; and string match -qr '^:' -- "$directiveLine"
        and test (math (math --scale 0 (string sub -s 2 -- $directiveLine) / ` + strconv.Itoa(int(complete.Command)) + `) % 2) -eq 1
        set -l command $args[(math $dashes + 1)..-1] (commandline -ct)
        complete -C "$command"
        echo :4
        return
    end

    for comp in $comps
`},
			{`function __sscli_perform_completion
`, `# The words before the cursor, quoted so that eval finds them again. Only variables are left
# for eval to expand.
function __sscli_words
    for word in (commandline -opc)
        if string match -qr '^[-=\w]*\$\w+$' -- $word
            echo $word
        else
            string escape -- $word
        end
    end
end

# The word at the cursor without its quotes, of which the last may be open.
function __sscli_word
    set -l word (commandline -ct)
    string unescape -- $word; or string unescape -- "$word'"; or string unescape -- "$word\""; or echo $word
end

function __sscli_perform_completion
`},
		}
	}
	return nil
}

// bashWords has bash functions for the words of the line up to the cursor. The first is for systems without
// the package bash-completion.
const bashWords = `# Replaces _init_completion if the package bash-completion is not loaded. It sets the words up to
# the cursor, in which bash has separated = and : from the text around them.
__sscli_init_completion()
{
    local line=${COMP_LINE:0:COMP_POINT} rest piece last='' i
    COMPREPLY=() words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        rest=${line#"${line%%[![:space:]]*}"} piece=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || piece=$rest
        if ((i > 0)) && [[ $rest == "$line" && ( $piece == [=:]* || $last == *[=:] ) ]]; then
            words[${#words[@]}-1]+=$piece
        else
            words+=("$piece")
        fi
        line=${rest:${#piece}} last=$piece
    done
    cword=$((${#words[@]} - 1))
    cur=${words[cword]} prev=${words[cword - 1]}
    [[ $prev != *[\<\>] ]] # the name of a file follows a redirection
}

# Whether -- precedes the word at the cursor.
__sscli_dashed()
{
    local word
    for word in "${words[@]:0:$cword}"; do
        [[ $word == -- ]] && return
    done
    return 1
}
`

// runs is a function for bash and zsh that finds the words that eval must not get.
const runs = `# Whether eval of a word would run a command or open a file.
__sscli_runs()
{
    local word=$1 quote='' c i
    for ((i = 0; i < ${#word}; i++)); do
        c=${word:$i:1}
        case $quote:$c in
            single:\') quote='' ;;
            single:*) ;;
            *:\\) ((i += 1)) ;;
            ansi:\') quote='' ;;
            ansi:*) ;;
            double:\") quote='' ;;
            :\") quote=double ;;
            :\') quote=single ;;
            *:` + "\\`" + `) return 0 ;;
            *:\$)
                c=${word:$((i + 1)):1}
                [[ $c == "(" ]] && return 0
                if [[ $quote$c == \' ]]; then
                    quote=ansi
                    ((i += 1))
                fi
                ;;
            :[\<\>]) return 0 ;;
            :=) [[ ${word:$((i + 1)):1} == "(" ]] && return 0 ;;
        esac
    done
    return 1
}
`
