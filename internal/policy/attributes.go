package policy

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/sscli/sscli/internal/yamltext"
)

// Attributes has the attributes of each user name, such as that of a service account, and of each certificate's
// subject, by the text that Subject returns.
type Attributes map[string]map[string]string

const annotation = "aio-broker-auth/"

// ParseAttributes reads who has which attributes. A document of the file, YAML or JSON, is a ServiceAccount with
// annotations aio-broker-auth/NAME, a BrokerAuthentication with authorizationAttributes, or a mapping of
// each user name or subject to its attributes. In a mapping, a name that begins as a subject does,
// with a type such as CN and an equals sign, is taken as both.
func ParseAttributes(file string, source []byte) (Attributes, error) {
	docs, err := documents(context.Background(), file, source)
	if err != nil {
		return nil, err
	}
	all := make(Attributes)
	var add func(n *yamltext.Node) error
	add = func(n *yamltext.Node) error {
		kindName := get(n, "kind")
		for _, list := range []*yamltext.Node{n, get(n, "value"), get(n, "items")} {
			if items, ok := yamltext.Items(list); ok {
				for _, item := range items {
					if err := add(item); err != nil {
						return err
					}
				}
				return nil
			}
		}
		methods := get(n, "properties", "authenticationMethods") // as az prints it
		if kindName != nil && nodeKind(kindName) == text && kindName.Value == "BrokerAuthentication" {
			methods = get(n, "spec", "authenticationMethods")
		}
		switch {
		case nodeKind(n) != mapping:
			return &SyntaxError{file, "expected SUBJECT: {NAME: VALUE}, or a ServiceAccount", n.Line}
		case methods != nil:
			for _, method := range elements(methods) {
				for name, value := range yamltext.Members(get(method, "x509Settings", "authorizationAttributes")) {
					subject := get(value, "subject")
					if subject == nil {
						return &SyntaxError{file, name.Value + ": no subject", name.Line}
					}
					key, why := parseSubject(subject.Value)
					if why != "" {
						return &SyntaxError{file, fmt.Sprintf("subject %.64q: %s", subject.Value, why), subject.Line}
					}
					if err := all.set(file, get(value, "attributes"), false, key); err != nil {
						return err
					}
				}
			}
		case kindName == nil || nodeKind(kindName) == mapping:
			for key, value := range yamltext.Members(n) {
				keys, why := keysOf(key.Value)
				if why != "" {
					return &SyntaxError{file, fmt.Sprintf("subject %.64q: %s", key.Value, why), key.Line}
				}
				if err := all.set(file, value, false, keys...); err != nil {
					return err
				}
			}
		case kindName.Value == "ServiceAccount":
			name, namespace := get(n, "metadata", "name"), "default"
			if name == nil {
				return &SyntaxError{file, "a ServiceAccount without a name", n.Line}
			}
			if at := get(n, "metadata", "namespace"); at != nil {
				namespace = at.Value
			}
			return all.set(file, get(n, "metadata", "annotations"), true, "system:serviceaccount:"+namespace+":"+name.Value)
		}
		return nil
	}
	for _, d := range docs {
		if err := add(d); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// set adds the attributes that n lists to those of each key of a. The annotations of a ServiceAccount, which may
// be missing, are attributes only if they have the prefix.
func (a Attributes) set(file string, n *yamltext.Node, annotations bool, keys ...string) error {
	if !annotations && nodeKind(n) != mapping {
		return &SyntaxError{file, "expected SUBJECT: {NAME: VALUE}", lineOf(n)}
	}
	own := make(map[string]string)
	for key, value := range yamltext.Members(n) {
		name, prefixed := strings.CutPrefix(key.Value, annotation)
		if annotations && !prefixed {
			continue
		}
		attribute, ok := yamltext.Scalar(value)
		if !ok {
			return &SyntaxError{file, "attribute " + key.Value + ": expected text", key.Line}
		}
		own[name] = attribute
	}
	for _, key := range keys {
		if a[key] == nil {
			a[key] = make(map[string]string)
		}
		maps.Copy(a[key], own)
	}
	return nil
}

func lineOf(n *yamltext.Node) int {
	if n == nil {
		return 1
	}
	return n.Line
}

// keysOf returns the keys of a name in a mapping. why says what is wrong with a subject.
func keysOf(name string) (keys []string, why string) {
	if !likeSubject(name) {
		return []string{name}, ""
	}
	subject, why := parseSubject(name)
	return []string{name, subject}, why
}

// Of returns the attributes of a client: those of its user name and of the subjects of its certificate and
// of those that issued it, as Subject returns them. Only the first subject that the table has counts: a certificate with
// attributes of its own does not get those of its issuer.
func (a Attributes) Of(username string, subjects []string) map[string]string {
	all := make(map[string]string)
	for _, s := range subjects {
		if own, listed := a[s]; listed {
			maps.Copy(all, own)
			break
		}
	}
	if username != "" {
		maps.Copy(all, a[username])
	}
	return all
}
