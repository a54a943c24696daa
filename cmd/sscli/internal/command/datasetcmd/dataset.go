// Package datasetcmd has the commands of `sscli dataset`, which manage the reference data of data flows.
// The package of the same name below cmd/sscli/internal reads, writes and compares the records, and reads
// the definitions of data flows.
package datasetcmd

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// New returns the command `sscli dataset` with its subcommands.
func New(a *app.App) *cobra.Command {
	return app.WithCommands(&cobra.Command{
		Use:     "dataset",
		Short:   "Load and check the reference data of data flows",
		GroupID: app.GroupFiles,
		Long: `Load, show, compare and check data sets: the reference data with which the data flows of
Azure IoT Operations enrich messages.

A data set is a key whose value is JSON Lines: one record, a JSON object, a line. A data
flow uses the first record that matches a message. If none matches, the data flow skips
the rules that need a record, and reports no error.`,
		Example: `  sscli dataset load device-metadata devices.csv --on deviceId
  sscli dataset match device-metadata deviceId=pump-7
  sscli dataset check flows/*.yaml`,
	}, newLoad(a), newShow(a), newDiff(a), newMatch(a), newCheck(a))
}

// readFlags are the flags that say how to read a file of records.
type readFlags struct {
	types, format, separator config.Text
}

func (f *readFlags) bind(fs *pflag.FlagSet) {
	fs.Var(&f.types, "types", "types of CSV columns: `COLUMN=TYPE,…`, where TYPE is string, number, boolean or json; the column * stands for all others")
	fs.Var(&f.format, "format", "read the file as `FORMAT`: json or csv (default: from its name, else from its first character)")
	fs.Var(&f.separator, "separator", "`CHARACTER` between the cells of CSV, or tab (default: a comma)")
}

func (f *readFlags) options(name string) (o dataset.Options, err error) {
	if o.Types, err = dataset.ParseTypes(string(f.types)); err != nil {
		return o, fault.Usagef("--types %w", err)
	}
	switch o.Format = dataset.Format(f.format); o.Format {
	case dataset.Auto, dataset.JSON, dataset.CSV:
	case "jsonl":
		o.Format = dataset.JSON
	default:
		return o, fault.Usagef("--format %.32q: expected json or csv", f.format)
	}
	if f.separator != "" {
		if o.Comma, err = dataset.ParseSeparator(string(f.separator)); err != nil {
			return o, fault.Usagef("--separator %w", err)
		}
	}
	o.Skipped = new(int)
	if name != "-" {
		o.Name = name
	}
	return o, nil
}

// pathFlag is a flag whose value is the path of a field.
type pathFlag struct{ path dataset.Path }

// Set implements [pflag.Value].
func (f *pathFlag) Set(text string) (err error) {
	f.path, err = dataset.ParsePath(text)
	return err
}

// String implements [pflag.Value].
func (f *pathFlag) String() string { return f.path.String() }

// Type implements [pflag.Value].
func (f *pathFlag) Type() string { return "string" }

// open opens a file, or standard input ("-"). size is the number of bytes, or 0 if the size is unknown or more than
// a value can have.
func open(ctx context.Context, a *app.App, name string) (source io.ReadCloser, size int, err error) {
	if info, err := os.Stat(name); name != "-" && (err != nil || info.Mode().IsRegular()) {
		file, err := files.Open(name)
		if err != nil {
			return nil, 0, &fault.UsageError{Err: err}
		}
		if known := files.Size(file); known <= files.MaxValue {
			size = int(known)
		}
		a.Signals.Arm()
		return file, size, nil
	}
	text, err := a.Read(ctx, name, "records from standard input") // Ctrl-C interrupts a.Read, but not os.ReadFile
	if path, ok := errors.AsType[*os.PathError](err); ok {
		err = &fault.UsageError{Err: path}
	}
	return io.NopCloser(strings.NewReader(text)), len(text), err
}

// read reads the value of a key. If the key is missing, read prints a notice, and found is false.
func read(ctx context.Context, a *app.App, key string) (value []byte, found bool, err error) {
	if err := client.Get(key).Check(); err != nil {
		return nil, false, &fault.UsageError{Err: err}
	}
	err = a.WithSession(ctx, func(s *client.Session, _ client.Options) error {
		a.RememberKey(key)
		r, err := verb.ReadKey(ctx, a, s, key)
		value, found = r.Value, r.Found
		return err
	})
	if err == nil && !found {
		a.Notify(format.Note{
			Level: format.Notice, Message: "there is no data set " + format.BriefWord(key),
			Hint: a.Hint(suggest.Try("`sscli dataset load KEY FILE`").Fill(suggest.Key, key)),
		})
	}
	return value, found, err
}

// notDataset adds the key and a hint to an error about the records in the value of a key. It returns
// other errors unchanged.
func notDataset(key string, err error) error {
	invalid, ok := errors.AsType[*dataset.Error](err)
	if !ok {
		return err
	}
	invalid.Name = format.BriefWord(key)
	return &fault.DatasetError{Err: invalid, Hint: suggest.Try("`sscli get KEY` shows the value; `sscli dataset load KEY FILE` replaces it").Fill(suggest.Key, key)}
}

func stored(key string) dataset.Options {
	return dataset.Options{Name: format.BriefWord(key), Stored: true}
}
