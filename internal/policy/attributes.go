package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
	docs, err := documents(file, source)
	if err != nil {
		return nil, err
	}
	all := make(Attributes)
	var add func(n *node) error
	add = func(n *node) error {
		kindName := n.get("kind")
		switch {
		case n.kind != mapping:
			return &SyntaxError{file, "expected SUBJECT: {NAME: VALUE}, or a ServiceAccount", n.line}
		case n.get("items") != nil && n.get("items").kind == sequence:
			for _, item := range n.get("items").items {
				if err := add(item); err != nil {
					return err
				}
			}
		case kindName == nil || kindName.kind == mapping:
			for _, m := range n.members {
				keys, why := keysOf(m.name)
				if why != "" {
					return &SyntaxError{file, fmt.Sprintf("subject %.64q: %s", m.name, why), m.line}
				}
				if err := all.set(file, m.value, keys...); err != nil {
					return err
				}
			}
		case kindName.text == "ServiceAccount":
			name, namespace := n.get("metadata", "name"), n.get("metadata", "namespace")
			if name == nil {
				return &SyntaxError{file, "a ServiceAccount without a name", n.line}
			}
			if namespace == nil {
				namespace = &node{text: "default"}
			}
			own := &node{kind: mapping}
			if notes := n.get("metadata", "annotations"); notes != nil {
				for _, m := range notes.members {
					if strings.HasPrefix(m.name, annotation) {
						own.members = append(own.members, m)
					}
				}
			}
			return all.set(file, own, "system:serviceaccount:"+namespace.text+":"+name.text)
		case kindName.text == "BrokerAuthentication":
			methods := n.get("spec", "authenticationMethods")
			if methods == nil {
				return nil
			}
			for _, method := range methods.items {
				table := method.get("x509Settings", "authorizationAttributes")
				if table == nil {
					continue
				}
				for _, m := range table.members {
					subject := m.value.get("subject")
					if subject == nil {
						return &SyntaxError{file, m.name + ": no subject", m.line}
					}
					key, why := parseSubject(subject.text)
					if why != "" {
						return &SyntaxError{file, fmt.Sprintf("subject %.64q: %s", subject.text, why), subject.line}
					}
					if err := all.set(file, m.value.get("attributes"), key); err != nil {
						return err
					}
				}
			}
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

// set adds the attributes that n lists to those of each key of a.
func (a Attributes) set(file string, n *node, keys ...string) error {
	if n == nil || n.kind != mapping {
		return &SyntaxError{file, "expected SUBJECT: {NAME: VALUE}", max(1, lineOf(n))}
	}
	own := make(map[string]string)
	for _, m := range n.members {
		if m.value.kind != text && m.value.kind != literal {
			return &SyntaxError{file, "attribute " + m.name + ": expected text", m.line}
		}
		own[strings.TrimPrefix(m.name, annotation)] = m.value.text
	}
	for _, key := range keys {
		if a[key] == nil {
			a[key] = make(map[string]string)
		}
		maps.Copy(a[key], own)
	}
	return nil
}

func lineOf(n *node) int {
	if n == nil {
		return 1
	}
	return n.line
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
// of those that issued it, as Subject returns them. The first that has an attribute wins.
func (a Attributes) Of(username string, subjects []string) map[string]string {
	all := make(map[string]string)
	for _, s := range slices.Backward(subjects) {
		maps.Copy(all, a[s])
	}
	if username != "" {
		maps.Copy(all, a[username])
	}
	return all
}
