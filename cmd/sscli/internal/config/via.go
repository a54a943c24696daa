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

// The defaults for the parts of a [Via].
const (
	defaultNamespace = "azure-iot-operations"
	defaultService   = "aio-broker"
	defaultViaPort   = "18883"
)

// A Via describes how to reach a broker in a Kubernetes cluster through the user's kubectl.
type Via struct {
	KubeContext string // kubectl's context; empty = its current context
	Namespace   string
	Resource    string // the operand of kubectl port-forward: service/NAME, pod/NAME or deploy/NAME
	Port        string // the port of Resource
}

// viaForm is the syntax of --via.
const viaForm = "kubectl[:[CONTEXT/][NAMESPACE/]SERVICE[:PORT]]"

// kindNames holds kubectl's names for each kind of resource that --via accepts. sscli uses the
// first name of each kind.
var kindNames = [...][]string{
	{"service", "services", "svc"},
	{"pod", "pods", "po"},
	{"deploy", "deployment", "deployments"},
}

// kindOf returns the name that sscli uses for a kind of resource. name may be any of kubectl's names
// for that kind.
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

// ParseVia parses the value of --via, from the right, because the name of a context may contain
// slashes and colons. A part that is left out gets its default.
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

func cutLast(text string) (before, last string) {
	i := strings.LastIndexByte(text, '/')
	return text[:max(i, 0)], text[i+1:]
}

// String returns v in the syntax of --via, with the defaults filled in.
func (v Via) String() string {
	resource := strings.TrimPrefix(v.Resource, "service/")
	if v.KubeContext != "" {
		return "kubectl:" + v.KubeContext + "/" + v.Namespace + "/" + resource + ":" + v.Port
	}
	return "kubectl:" + v.Namespace + "/" + resource + ":" + v.Port
}

// Host returns the name to expect in the broker's certificate, which names the service. For a pod or
// a deployment, which the certificate does not name, Host returns the default service.
func (v Via) Host() string {
	if name, ok := strings.CutPrefix(v.Resource, "service/"); ok {
		return name
	}
	return defaultService
}

// expandVia sets the host and the port of a layer from its via. It also turns on TLS, unless the layer
// sets TLS.
func (l layer) expandVia() error {
	if !l.has("via") {
		return nil
	}
	text, source := l["via"].value, l["via"].source
	for _, other := range []string{"url", "host", "port"} {
		if l.has(other) {
			return &Error{source, "together with " + l[other].source.String() + ": use only one of them"}
		}
	}
	v, err := ParseVia(text)
	if err != nil {
		return &Error{source, err.Error()}
	}
	l["host"], l["port"] = given{v.Host(), source}, given{v.Port, source}
	if !l.has("tls") {
		l["tls"] = given{"true", source}
	}
	return nil
}

// via sets r.out.Via if l, the layer that names the host, has a --via. It ignores a --via in any other
// layer, which is for another host.
func (r *resolver) via(l layer) {
	v, err := ParseVia(l["via"].value)
	if !l.has("via") || err != nil { // expandVia has reported the error
		return
	}
	if _, port, err := net.SplitHostPort(r.out.Address); err == nil {
		v.Port = port // an earlier layer may have set the port
	}
	r.out.Via = &v
	r.out.Sources["via"] = l["via"].source
}

// viaNames checks the names of resources in the cluster of --via. Without --via, it reports an error
// for a flag, but ignores a variable.
func (r *resolver) viaNames(flags ...string) {
	for _, flag := range flags {
		name := r.all(flag)
		switch {
		case name == "":
		case !IsResourceName(name):
			r.bad(flag, fmt.Sprintf("%.80q: expected the name of a resource in the cluster", name))
		case r.out.Sources[flag].Flag != "" && r.out.Via == nil && r.out.Broker() == nil:
			r.bad(flag, "is for a broker in a cluster: add --via kubectl")
		}
	}
}

// The names in a default installation of the broker.
const (
	defaultViaCA      = "azure-iot-operations-aio-ca-trust-bundle"
	defaultViaAccount = "default"
)

// ClusterCA returns the name of the config map from which --via reads the broker's CA. The name is empty
// if no CA is needed, or if another setting says which CA to trust.
func (s Settings) ClusterCA() string {
	if s.Via == nil || !s.TLS || s.Insecure || s.CAFile != "" {
		return ""
	}
	return cmp.Or(s.ViaCA, defaultViaCA)
}

// ClusterAccount returns the name of the service account that --via logs in as. The name is empty
// if another setting says how to log in.
func (s Settings) ClusterAccount() string {
	if s.Via == nil || s.SATFile != "" || s.Username != "" || s.CertFile != "" {
		return ""
	}
	return cmp.Or(s.ViaServiceAccount, defaultViaAccount)
}
