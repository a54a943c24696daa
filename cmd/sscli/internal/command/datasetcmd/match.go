package datasetcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

func newMatch(a *app.App) *cobra.Command {
	m := matcher{app: a}
	cmd := &cobra.Command{
		Use:   "match KEY {FIELD=VALUE...|--message FILE --on FIELD}",
		Short: "Find the record that a data flow would use",
		Long: `Print the record of a data set that a data flow would use: the first record whose fields
equal the values. If there is none, the data flow would skip the rules that need a record.
Then the exit code is 1, and stderr shows near misses: records that differ only in case,
in type (the string "7" and the number 7) or in blanks.

VALUE is a number, true or false if it is written like one in JSON, else a string; '"7"'
is a string too. With --message, the values come from the fields of a message. Each --on
names one of these fields: FIELD, or MESSAGE-FIELD=RECORD-FIELD if the names differ. A
field can be nested: asset.id.

The documentation of data flows does not say when values of different types are equal.
match takes them as different, even 7 and 7.0.`,
		Example: `  sscli dataset match device-metadata deviceId=pump-7
  sscli dataset match device-metadata --message message.json --on asset.id=deviceId`,
		ValidArgsFunction: complete.Keys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.Usagef("missing KEY")
			}
			m.key = args[0]
			return m.run(cmd.Context(), args[1:])
		},
	}
	fs := cmd.Flags()
	fs.Var(&m.message, "message", "take the values from the messages in `FILE`, JSON objects, or from standard input (-)")
	fs.StringArrayVar(&m.on, "on", nil, "a `FIELD` of the message to compare; may be repeated")
	fs.Var(&m.data, "data", "read the data set from a file in `DIR`, as check does, and not from the store")
	return cmd
}

// A matcher finds the record that a data flow would use.
type matcher struct {
	app     *app.App
	key     string
	message config.File
	on      []string
	data    config.Text

	from []dataset.Path // with --message, the field of the message for each condition of the query
}

func (m *matcher) run(ctx context.Context, words []string) error {
	query, err := m.query(words)
	if err != nil {
		return err
	}
	rows, err := m.records(ctx)
	if err != nil {
		return err
	}
	if m.message == "" {
		return m.find(rows, query, 0)
	}
	source, _, err := open(ctx, m.app, string(m.message))
	if err != nil {
		return err
	}
	defer source.Close()
	var no error
	messages := 0
	for message, err := range dataset.Read(source, dataset.Options{Name: string(m.message), Format: dataset.JSON}) {
		if err != nil {
			return err
		}
		messages++
		for i, field := range m.from {
			query[i].Value = field.In(message.JSON)
			if _, err := dataset.Parse(query[i].Value); err != nil {
				m.app.Warn(fmt.Sprintf("%s: %s of the message is %v: it equals nothing", format.Location(string(m.message), message.Line, 0), field, err))
			}
		}
		if err := m.find(rows, query, message.Line); err == fault.ErrNo {
			no = err
		} else if err != nil {
			return err
		}
	}
	if messages == 0 {
		return fault.Usagef("--message: %s has no message: expected at least one", format.Location(string(m.message), 0, 0))
	}
	return no
}

func (m *matcher) query(words []string) (q dataset.Query, err error) {
	switch {
	case m.message == "" && len(m.on) > 0:
		return nil, fault.Usagef("--on without --message: expected FIELD=VALUE, or a file with messages")
	case m.message == "" && len(words) == 0:
		return nil, fault.Usagef("missing FIELD=VALUE or --message FILE")
	case m.message != "" && (len(words) > 0 || len(m.on) == 0):
		return nil, fault.Usagef("--message: expected --on FIELD for each field that is compared, and no FIELD=VALUE")
	}
	for _, on := range m.on {
		from, to, renamed := strings.Cut(on, "=")
		if !renamed {
			to = from
		}
		field, err := dataset.ParsePath(to)
		if err != nil {
			return nil, fault.Usagef("--on %w", err)
		}
		path, err := dataset.ParsePath(from)
		if err != nil {
			return nil, fault.Usagef("--on %w", err)
		}
		m.from = append(m.from, path)
		q = append(q, dataset.Condition{Field: field})
	}
	for _, word := range words {
		name, text, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fault.Usagef("%.64q: expected FIELD=VALUE", word)
		}
		field, err := dataset.ParsePath(name)
		if err != nil {
			return nil, &fault.UsageError{Err: err}
		}
		value, err := valueOf(text)
		if err != nil {
			return nil, err
		}
		q = append(q, dataset.Condition{Field: field, Value: value})
	}
	return q, nil
}

// valueOf returns the JSON value for a command-line argument: the argument itself if it is a JSON
// string, number or boolean, without blanks around it, else a string with its text. An error says that the text is not
// UTF-8, and so no value of a record.
func valueOf(text string) ([]byte, error) {
	if !utf8.ValidString(text) {
		return nil, fault.Usagef("%.64q is not UTF-8, as all values of a data set are", text)
	}
	value := []byte(text)
	if strings.TrimSpace(text) == text && json.Valid(value) {
		if _, err := dataset.Parse(value); err == nil {
			return value, nil
		}
	}
	return json.Marshal(text)
}

// records returns the records of the data set, from the store or from --data. The caller may iterate
// over them several times.
func (m *matcher) records(ctx context.Context) (iter.Seq2[dataset.Record, error], error) {
	if err := client.Get(m.key).Check(); err != nil {
		return nil, &fault.UsageError{Err: err}
	}
	if m.data != "" {
		rows, _, err := dataset.ReadKey(string(m.data), m.key)
		return rows, err
	}
	value, found, err := read(ctx, m.app, m.key)
	rows := func(yield func(dataset.Record, error) bool) {
		dataset.Read(bytes.NewReader(value), stored(m.key))(yield)
	}
	return rows, cmp.Or(err, fault.NoIf(!found))
}

const maxNear = 5

// find prints the first record that matches the query. If none does, find prints near misses, and
// returns fault.ErrNo. message is the line number of the message, or 0 if there is no message.
func (m *matcher) find(rows iter.Seq2[dataset.Record, error], q dataset.Query, message int) error {
	result := format.DatasetMatch{Key: m.key, Message: message}
	var near []string
	later, line := 0, 0 // line is the number of the record in the data set; in a file of --data, r.Line may differ
	for r, err := range rows {
		if err != nil && m.data == "" {
			err = notDataset(m.key, err)
		}
		if err != nil {
			return err
		}
		line++
		switch matches, why := q.Match(r.JSON); {
		case matches && result.Line == 0:
			result.Line, result.Record = line, bytes.Clone(r.JSON)
		case matches:
			later++
		case why != "" && len(near) < maxNear:
			near = append(near, fmt.Sprintf("line %d: %s", line, why))
		}
	}
	if err := m.app.Emit(result); err != nil {
		return err
	}
	switch {
	case result.Line == 0:
		for _, why := range near {
			m.app.Inform("nearly: " + why)
		}
		return fault.ErrNo
	case later > 0:
		m.app.Inform(fmt.Sprintf("%s below match too; the first one wins", format.Count(later, "record")))
	}
	return nil
}
