package config

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The parts of a [Via] that the user need not name.
const (
	defaultNamespace = "azure-iot-operations"
	defaultService   = "aio-broker"
	defaultViaPort   = "18883"
)

// A Via is a way to a broker in a Kubernetes cluster, by the user's own kubectl.
type Via struct {
	KubeContext string // of kubectl; empty for its current one
	Namespace   string
	Resource    string // as kubectl port-forward takes it: service/NAME, pod/NAME or deploy/NAME
	Port        string // of Resource
}

// viaForm is what the value of --via looks like.
const viaForm = "kubectl[:[CONTEXT/][NAMESPACE/]SERVICE[:PORT]]"

// kindNames are the names that kubectl has for the kinds of resources that it forwards to. The
// first name of each is ours.
var kindNames = [...][]string{
	{"service", "services", "svc"},
	{"pod", "pods", "po"},
	{"deploy", "deployment", "deployments"},
}

// kindOf returns our name for a kind of resource.
func kindOf(name string) (string, bool) {
	for _, names := range kindNames {
		if slices.Contains(names, name) {
			return names[0], true
		}
	}
	return "", false
}

// IsResourceName reports whether a service, a pod, a namespace, … may have the name.
func IsResourceName(name string) bool {
	plain := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
	if name == "" || len(name) > 253 || !plain(name[0]) || !plain(name[len(name)-1]) {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf || !plain(byte(r)) && r != '-' && r != '.' })
}

// ParseVia reads the value of --via. It reads from the right, because the name of a context may hold
// slashes and colons. An empty part has its default.
func ParseVia(text string) (Via, error) {
	v := Via{Namespace: defaultNamespace, Port: defaultViaPort}
	rest, found := strings.CutPrefix(text, "kubectl:")
	if !found && text != "kubectl" {
		return v, fmt.Errorf("%.80q: expected %s", text, viaForm)
	}
	if !found {
		rest = ""
	}
	rest, last := cutLast(rest)
	name, port, hasPort := strings.Cut(last, ":")
	if hasPort {
		if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 {
			return v, fmt.Errorf("port %.32q: must be a port of 1 to 65535", port)
		}
		v.Port = port
	}
	kind := "service"
	before, word := cutLast(rest)
	if known, ok := kindOf(word); ok {
		if name == "" {
			return v, fmt.Errorf("%.80q: expected the name of a %s", text, known)
		}
		kind = known
		before, word = cutLast(before)
	}
	if name == "" {
		name = defaultService
	}
	if word != "" {
		v.Namespace = word
	}
	v.KubeContext, v.Resource = before, kind+"/"+name
	switch {
	case !IsResourceName(name):
		return v, fmt.Errorf("%.80q: expected the name of a service, pod/NAME or deploy/NAME", name)
	case !IsResourceName(v.Namespace):
		return v, fmt.Errorf("%.80q: expected the name of a namespace", v.Namespace)
	case v.KubeContext != "" && !storable(v.KubeContext):
		return v, fmt.Errorf("%.80q: expected the name of a kubectl context", v.KubeContext)
	}
	return v, nil
}

// cutLast cuts off what follows the last slash.
func cutLast(text string) (before, last string) {
	i := strings.LastIndexByte(text, '/')
	return text[:max(i, 0)], text[i+1:]
}

// String returns v as --via takes it, with all its parts.
func (v Via) String() string {
	resource := strings.TrimPrefix(v.Resource, "service/")
	if v.KubeContext != "" {
		return "kubectl:" + v.KubeContext + "/" + v.Namespace + "/" + resource + ":" + v.Port
	}
	return "kubectl:" + v.Namespace + "/" + resource + ":" + v.Port
}

// Host returns the name to expect in the broker's certificate: the service's. The certificate does
// not name the pods and deployments behind the service, so they have the default service's name.
func (v Via) Host() string {
	if name, ok := strings.CutPrefix(v.Resource, "service/"); ok {
		return name
	}
	return defaultService
}

// expandVia replaces the via of a layer by the settings that it stands for: host and port.
func (l *layer) expandVia() error {
	text, ok := l.values["via"]
	if !ok {
		return nil
	}
	source := l.sources["via"]
	for _, other := range []string{"url", "host", "port"} {
		if _, both := l.values[other]; both {
			return &Error{source, "together with " + l.sources[other] + ": use only one of them"}
		}
	}
	v, err := ParseVia(text)
	if err != nil {
		return &Error{source, err.Error()}
	}
	l.set("host", v.Host(), source)
	l.set("port", v.Port, source)
	if _, said := l.values["tls"]; !said {
		l.set("tls", "true", source)
	}
	return nil
}

// via decides how to reach the host that endpoint decided on. The host of a --via is no host that
// this machine can look up, so the layer of the host decides.
func (r *resolver) via(l layer) {
	text, ok := l.values["via"]
	if !ok {
		return
	}
	v, err := ParseVia(text)
	if err != nil {
		return // expandVia has reported it
	}
	if _, port, err := net.SplitHostPort(r.out.Address); err == nil {
		v.Port = port // perhaps of an earlier layer
	}
	r.out.Via = &v
	r.out.Sources["via"] = l.sources["via"]
}

// viaNames checks flags that name a resource in the cluster of --via. It refuses a flag that has no
// effect without --via.
func (r *resolver) viaNames(flags ...string) {
	for _, flag := range flags {
		name := r.all(flag)
		switch {
		case name == "":
		case !IsResourceName(name):
			r.bad(flag, fmt.Sprintf("%.80q: expected the name of a resource in the cluster", name))
		case r.out.Sources[flag] == "--"+flag && r.out.Via == nil && r.out.Broker() == nil:
			r.bad(flag, "without a way into a cluster: add --via kubectl")
		}
	}
}

// What the broker of an installation without changes uses.
const (
	defaultViaCA      = "azure-iot-operations-aio-ca-trust-bundle"
	defaultViaAccount = "default"
)

// ClusterCA returns the config map to read the broker's CA from with --via. It is empty if none is
// needed: another setting says which CA to trust.
func (s Settings) ClusterCA() string {
	if s.Via == nil || !s.TLS || s.Insecure || s.CAFile != "" {
		return ""
	}
	return cmp.Or(s.ViaCA, defaultViaCA)
}

// ClusterAccount returns the service account to log in as with --via. It is empty if another
// setting is a login.
func (s Settings) ClusterAccount() string {
	if s.Via == nil || s.SATFile != "" || s.Username != "" || s.CertFile != "" {
		return ""
	}
	return cmp.Or(s.ViaServiceAccount, defaultViaAccount)
}
