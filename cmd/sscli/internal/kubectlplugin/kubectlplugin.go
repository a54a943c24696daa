// Package kubectlplugin makes sscli a plugin of kubectl: `kubectl sscli get a` runs the program
// kubectl-sscli, which is sscli under that name.
//
// The plugin connects with --via kubectl unless the user names another broker. Before the command,
// the plugin accepts kubectl's flags --context, --namespace (-n) and --kubeconfig.
package kubectlplugin

import (
	"os"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// Name is the name under which kubectl starts the plugin, without .exe.
const Name = "kubectl-sscli"

// Setup removes kubectl's flags from the beginning of args. It returns the remaining arguments, and
// a function to use in place of env, which passes the flags on as SSCLI_VIA. If --kubeconfig is
// given, Setup sets KUBECONFIG in the environment of this process, so that every kubectl inherits
// it.
func Setup(args []string, env func(string) (string, bool)) ([]string, func(string) (string, bool), error) {
	var kubeContext, namespace, kubeconfig string
	flags := map[string]*string{"--context": &kubeContext, "--namespace": &namespace, "-n": &namespace, "--kubeconfig": &kubeconfig}
	for len(args) > 0 {
		name, value, joined := strings.Cut(args[0], "=")
		to := flags[name]
		if to == nil {
			break
		}
		args = args[1:]
		if !joined {
			if len(args) == 0 {
				return nil, env, fault.Usagef("%s: expected a value", name)
			}
			value, args = args[0], args[1:]
		}
		if value == "" {
			return nil, env, fault.Usagef("%s: must not be empty", name)
		}
		*to = value
	}
	if kubeconfig != "" {
		if err := os.Setenv("KUBECONFIG", kubeconfig); err != nil {
			return nil, env, err
		}
	}
	way := "kubectl"
	switch {
	case kubeContext != "":
		way = "kubectl:" + kubeContext + "/" + namespace + "/"
	case namespace != "":
		way = "kubectl:" + namespace + "/"
	}
	said := false // whether a variable names the broker
	for _, name := range []string{"SSCLI_VIA", "SSCLI_URL", "SSCLI_HOST", "SSCLI_EMBEDDED", "SSCLI_CONTEXT"} {
		value, set := env(name)
		said = said || set && value != ""
	}
	if said && way == "kubectl" {
		return args, env, nil
	}
	return args, func(name string) (string, bool) {
		switch name {
		case "SSCLI_VIA":
			return way, true
		case "SSCLI_URL", "SSCLI_HOST", "SSCLI_PORT", "SSCLI_EMBEDDED":
			return "", false
		}
		return env(name)
	}, nil
}
