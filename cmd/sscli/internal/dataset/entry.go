package dataset

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/sscli/sscli/internal/yamltext"
)

// datasets reads the elements of a datasets list, and reports aliases that appear twice.
func (r *reader) datasets(list []*yamltext.Node) (in []*Reference) {
	for _, item := range list {
		d := r.entry(item)
		if d == nil {
			continue
		}
		for _, other := range in {
			if other.Alias == d.Alias {
				r.finding(item, fmt.Sprintf("two data sets are called %.100q: see line %d", d.Alias, other.Line), "give one of them another alias: key: "+d.Key+" as ALIAS")
			}
		}
		in = append(in, d)
		r.file.Datasets = append(r.file.Datasets, d)
	}
	return in
}

// entry reads an element of a datasets list. It returns nil if the element has no key.
func (r *reader) entry(n *yamltext.Node) *Reference {
	keyNode := yamltext.Member(n, "key")
	words, ok := text(keyNode)
	if words = strings.TrimSpace(words); !ok || words == "" {
		r.finding(n, "the data set has no key", "add key: KEY, the key of the state store that has the records")
		return nil
	}
	d := &Reference{Line: r.at(keyNode), Key: words, Alias: words}
	if named := regexp.MustCompile(`^(.*\S)\s+as\s+(\S+)$`).FindStringSubmatch(words); named != nil {
		d.Key, d.Alias = named[1], named[2]
	}
	if as := yamltext.Member(n, "as"); as != nil {
		d.Alias, _ = text(as)
		r.note(as, "as: the documentation has the alias in key: "+d.Key+" as "+d.Alias)
	}
	fields := r.matchInputs(n, d)
	r.expression(n, d, fields)
	return d
}

// matchInputs reads the inputs of a data set. For each input it returns the field of the records, or
// nil if the input is a field of the message or invalid.
func (r *reader) matchInputs(n *yamltext.Node, d *Reference) (fields []Path) {
	const want = "write $source.FIELD for a field of the message, and $context.FIELD for a field of the record"
	list, ok := yamltext.Items(yamltext.Member(n, "inputs"))
	if !ok || len(list) == 0 {
		r.finding(n, fmt.Sprintf("the data set %.100q has no inputs", d.Key), "add inputs: [$source.FIELD, $context.FIELD]")
		return nil
	}
	found := len(r.file.Findings)
	for _, item := range list {
		fields = append(fields, nil)
		input, _ := text(item)
		input = bare(input)
		path, ofMessage := strings.CutPrefix(input, "$source.")
		ofRecord := false
		if ref := reference().FindStringSubmatch(input); ref != nil { // the documentation also uses this form
			if alias := strings.TrimSpace(ref[1]); alias != d.Alias && alias != d.Key {
				r.finding(item, fmt.Sprintf("the input %.100q is a field of another data set", input), "write $context."+ref[2])
				continue
			}
			path, ofRecord = ref[2], true
		} else if !ofMessage {
			path, ofRecord = strings.CutPrefix(input, "$context.")
		}
		if !ofMessage && !ofRecord {
			r.finding(item, fmt.Sprintf("the input %.100q is neither of the message nor of the record", input), want)
			continue
		}
		p, err := ParsePath(path)
		switch {
		case err != nil:
			r.finding(item, "the input "+err.Error(), want)
		case strings.Contains("."+path+".", ".*."):
			r.finding(item, fmt.Sprintf("the input %.100q has a wildcard", input), "name the field: a data set takes no wildcard")
		case ofRecord:
			fields[len(fields)-1] = p
			d.Fields = append(d.Fields, UsedField{Line: r.at(item), Path: p})
		}
	}
	if len(d.Fields) == 0 && len(r.file.Findings) == found {
		r.finding(n, fmt.Sprintf("no input of the data set %.100q is a field of its records", d.Key), want)
	}
	return fields
}

// expression checks the expression of a data set, and sets d.On if the expression is $1 == $2.
func (r *reader) expression(n *yamltext.Node, d *Reference, fields []Path) {
	node := yamltext.Member(n, "expression")
	expression, _ := text(node)
	if expression == "" {
		r.finding(n, fmt.Sprintf("the data set %.100q has no expression", d.Key), "add expression: $1 == $2")
		return
	}
	for _, variable := range regexp.MustCompile(`\$(\d+)`).FindAllStringSubmatch(expression, -1) {
		i, err := strconv.Atoi(variable[1])
		if err != nil || i < 1 || i > len(fields) {
			r.finding(node, fmt.Sprintf("the expression names %.32s, and there are %d inputs", variable[0], len(fields)), "add an input, or count from $1")
			return
		}
	}
	equality := strings.Join(strings.Fields(expression), "")
	if equality != "$1==$2" && equality != "$2==$1" {
		r.note(node, fmt.Sprintf("the expression %.100q is not checked: only $1 == $2 is", expression))
		return
	}
	switch a, b := fields[0], fields[1]; {
	case a != nil && b == nil:
		d.On = a
	case b != nil && a == nil:
		d.On = b
	}
}
