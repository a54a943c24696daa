package via

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// A Kind classifies an [Error].
type Kind int

// The kinds of errors.
const (
	Other        Kind = iota
	Missing           // kubectl is not installed or too old
	Unreachable       // kubectl cannot reach the cluster, or the broker's pod
	Unauthorized      // the cluster does not accept the user's login
	Forbidden         // the user lacks a permission
	NotFound          // the cluster has no such service, config map, …
)

// An Error describes why kubectl failed.
type Error struct {
	Call string // the beginning of the command line
	Kind Kind
	Why  string       // one line, mostly in kubectl's words
	Hint suggest.Hint // what to do next; nil = none
}

func (e *Error) Error() string { return e.Call + ": " + e.Why }

// Advice returns the hint, if there is one.
func (e *Error) Advice() (hint suggest.Hint, ok bool) { return e.Hint, e.Hint != nil }

const (
	hintUnreachable = "`kubectl cluster-info` shows whether kubectl reaches the cluster"
	hintPod         = "`sscli doctor` checks each step of the connection"
)

// missing returns the error for a kubectl that could not be started.
func missing(call string, err error) error {
	why := err.Error()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		why = "kubectl is not in the PATH"
	}
	return &Error{Call: call, Kind: Missing, Why: why, Hint: suggest.Try("install kubectl 1.24 or newer, then `kubectl get nodes`")}
}

const (
	// noise matches the prefix that kubectl's log puts before a message.
	noise = `^[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.]+:\d+\] `

	// denied matches the API server's message about a missing permission.
	denied = `User "([^"]*)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`
)

// cleanLine returns a line of kubectl's output without its log prefix and "error: ".
func cleanLine(line string) string {
	line = regexp.MustCompile(noise).ReplaceAllString(strings.TrimSpace(line), "")
	line = strings.TrimPrefix(line, "error: ")
	return strings.TrimPrefix(line, "Error: ")
}

// lastLine returns the last line of kubectl's standard error that is neither empty nor a reference
// to the help. That line says why kubectl failed.
func lastLine(text string) string {
	last := ""
	for line := range strings.Lines(text) {
		if line := cleanLine(line); line != "" && !strings.HasPrefix(line, "See 'kubectl") {
			last = line
		}
	}
	return last
}

// classify returns the error for a kubectl that failed. stderr is the output of kubectl on standard
// error.
func classify(call string, target config.Via, stderr string) error {
	e := &Error{Call: call, Why: lastLine(stderr)}
	has := func(words ...string) bool {
		for _, word := range words {
			if strings.Contains(stderr, word) {
				return true
			}
		}
		return false
	}
	if m := regexp.MustCompile(denied).FindStringSubmatch(stderr); m != nil {
		e.Kind, e.Why = Forbidden, fmt.Sprintf("forbidden: %q may not %s %s", m[1], m[2], m[3])
		where := "in the whole cluster"
		if m[5] != "" {
			where = "in the namespace " + m[5]
		}
		e.Hint = suggest.Say(fmt.Sprintf("ask for this rule %s: apiGroups: [%q], resources: [%q], verbs: [%q]", where, m[4], m[3], m[2]))
		return e
	}
	switch {
	case e.Why == "":
		e.Why = "kubectl ended without a message"
	case has("Forbidden", "forbidden"):
		e.Kind, e.Hint = Forbidden, suggest.Try("`sscli doctor` shows each right that is needed")
	case has("Unauthorized", "must be logged in", "getting credentials", "exec plugin", "executable kubelogin"):
		e.Kind, e.Hint = Unauthorized, suggest.Try("log in to the cluster, until `kubectl get nodes` works")
	case has("context was not found", "does not exist", "no context exists"):
		e.Kind, e.Hint = NotFound, suggest.Try("`kubectl config get-contexts` lists the contexts")
	case has("no configuration has been provided", "localhost:8080"):
		e.Kind, e.Hint = Unreachable, suggest.Try("kubectl has no cluster: set KUBECONFIG, or `kubectl config use-context NAME`")
	case has("unknown flag", "unknown command", "Unexpected args", "must specify"):
		e.Kind, e.Hint = Missing, suggest.Try("use kubectl 1.24 or newer")
	case has("NotFound", "not found"):
		e.Kind, e.Hint = NotFound, notFoundHint(call, target)
	case has("unable to connect", "Unable to connect", "connection refused", "was refused", "no such host", "i/o timeout", "no route to host", "lost connection", "TLS handshake timeout", "x509"):
		e.Kind, e.Hint = Unreachable, suggest.Try(hintUnreachable)
		if has("forwarding", "lost connection") {
			e.Hint = suggest.Try("`kubectl get pods --namespace NAME` shows whether the broker is running").Fill(suggest.Name, target.Namespace)
		}
	case has("pod is not running", "not running", "pending", "timed out waiting", "no pods", "any pods"):
		e.Kind, e.Hint = Unreachable, suggest.Try("`kubectl get pods -n NAME` shows whether the broker is running").Fill(suggest.Name, target.Namespace)
		if has("timed out waiting for the condition") { // kubectl does not say which condition
			e.Why = "no pod is running"
		}
	}
	return e
}

// notFoundHint returns the hint for a resource that does not exist: a kubectl command that lists the
// existing resources of its kind.
func notFoundHint(call string, target config.Via) suggest.Hint {
	kind := "services"
	switch {
	case strings.Contains(call, "configmap"):
		kind = "configmaps"
	case strings.Contains(call, "create token"):
		kind = "serviceaccounts"
	case strings.HasPrefix(target.Resource, "pod/"):
		kind = "pods"
	case strings.HasPrefix(target.Resource, "deploy/"):
		kind = "deployments"
	}
	return suggest.Try("`kubectl get "+kind+" -n NAME` lists what is there").Fill(suggest.Name, target.Namespace)
}
