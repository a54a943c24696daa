package cmdline

import (
	"os"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// PluginName is the name under which kubectl starts sscli as its plugin, without .exe: `kubectl sscli get
// a` runs the program kubectl-sscli. It connects with --via kubectl unless the user names another broker.
const PluginName = "kubectl-sscli"

// SetupPlugin removes --context, --namespace (-n) and --kubeconfig from the beginning of args. It returns the remaining arguments, and
// a function to use in place of env, which passes the flags on as SSCLI_VIA. If --kubeconfig is
// given, SetupPlugin sets KUBECONFIG in the environment of this process, so that every kubectl inherits
// it.
func SetupPlugin(args []string, env func(string) (string, bool)) ([]string, func(string) (string, bool), error) {
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
