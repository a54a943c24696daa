package policy

import (
	"maps"
	"slices"
	"strings"
)

// Attributes has the attributes of each user name, such as that of a service account, and of each certificate's
// subject, by its subjectKey.
type Attributes map[string]map[string]string

const annotation = "aio-broker-auth/"

// ParseAttributes reads who has which attributes. A document of the file, YAML or JSON, is a ServiceAccount with
// annotations aio-broker-auth/NAME, a BrokerAuthentication with authorizationAttributes, or a mapping of
// each user name or subject to its attributes. In a mapping, a name with an equals sign is taken as both.
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
				if err := all.set(file, m.value, keysOf(m.name)...); err != nil {
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
					if err := all.set(file, m.value.get("attributes"), subjectKey(subject.text)); err != nil {
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

// keysOf returns the keys of a name in a mapping.
func keysOf(name string) []string {
	if strings.Contains(name, "=") {
		return []string{name, subjectKey(name)}
	}
	return []string{name}
}

// subjectKey returns the key of a certificate's subject such as "CN = a, OU = b", without regard to the order and the
// spaces of its parts. No user name is like it, because MQTT forbids NUL.
func subjectKey(subject string) string {
	parts := strings.Split(subject, ",")
	for i, p := range parts {
		name, value, _ := strings.Cut(p, "=")
		parts[i] = strings.ToUpper(strings.TrimSpace(name)) + "=" + strings.TrimSpace(value)
	}
	slices.Sort(parts)
	return "\x00" + strings.Join(parts, ",")
}

// Of returns the attributes of a client: those of its user name and of the subjects of its certificate and
// of those that issued it. The first that has an attribute wins.
func (a Attributes) Of(username string, subjects []string) map[string]string {
	all := make(map[string]string)
	for _, s := range slices.Backward(subjects) {
		maps.Copy(all, a[subjectKey(s)])
	}
	if username != "" {
		maps.Copy(all, a[username])
	}
	return all
}
