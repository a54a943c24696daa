package serve

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/disk"
)

type dataFlags struct {
	file     config.File
	persist  string
	patterns []string
	check    config.File
}

const (
	persistAll   = "all"
	persistAsked = "asked"
)

func (f *dataFlags) bind(fs *pflag.FlagSet) {
	fs.Var(&f.file, "data", "`FILE` that keeps the store, so that it survives a restart; created if it does not exist")
	fs.StringVar(&f.persist, "persist", persistAll, "`WHICH` keys --data keeps: all, or asked, which means the keys set with --persist")
	fs.StringArrayVar(&f.patterns, "persist-pattern", nil, "`PATTERN`, as of scan, of keys that --persist asked also keeps; may be repeated")
	fs.Var(&f.check, "data-check", "read this `FILE` of --data, report damage, and exit; with --data, write what is readable to that file, which must be new")
}

func (f dataFlags) options() (emulator.Data, error) {
	d := emulator.Data{File: string(f.file), Asked: f.persist == persistAsked, Patterns: f.patterns}
	switch {
	case f.persist != persistAll && f.persist != persistAsked:
		return d, fault.Usagef("--persist %.32q: expected %s or %s", f.persist, persistAll, persistAsked)
	case len(f.patterns) > 0 && !d.Asked:
		return d, fault.Usagef("--persist-pattern without --persist %s: all keys are kept", persistAsked)
	case d.Asked && d.File == "":
		return d, fault.Usagef("--persist without --data: add --data FILE")
	}
	for _, pattern := range f.patterns {
		if _, err := usage.Pattern("--persist-pattern", pattern); err != nil {
			return d, err
		}
	}
	return d, nil
}

// dataError adds a hint to an error about a data file. It returns other errors unchanged.
func dataError(err error) error {
	data, ok := errors.AsType[*emulator.DataError](err)
	if !ok {
		return err
	}
	e := &fault.DataError{Err: data.Err, Hint: suggest.Try("start again when the file can be written: no write that was acknowledged is lost")}
	if damage, ok := errors.AsType[*disk.DamageError](err); ok {
		e.Hint = suggest.Try("`sscli serve --data-check FILE`").Fill(suggest.File, damage.Name)
	} else if _, ok := errors.AsType[*disk.LockedError](err); ok {
		e.Hint = suggest.Try("end that process, or another `--data`")
	} else if _, ok := errors.AsType[*disk.RemovedError](err); ok {
		e.Hint = suggest.Try("put the file back, if it was moved; otherwise the keys in it are lost")
	} else if _, ok := errors.AsType[*disk.FormatError](err); ok {
		e.Hint = suggest.Try("run the version that wrote it, or use another `--data`")
	} else if errors.Is(err, disk.ErrNotRegular) {
		e.Hint = suggest.Try("another `--data`: a file, which need not exist yet")
	}
	return e
}

// checkData checks a data file for damage. With --data, it writes the readable keys to a new file.
func checkData(a *app.App, f dataFlags) error {
	name := string(f.check)
	var report disk.Report
	var err error
	if f.file == "" {
		report, err = disk.Check(name, nil)
	} else {
		report, err = disk.Salvage(name, string(f.file))
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) || errors.Is(err, disk.ErrNotRegular) {
			return fault.Usagef("--data-check: %w", err)
		}
		return dataError(&emulator.DataError{Err: err})
	}
	result := format.DataCheck{File: name, Keys: report.Records, Bytes: report.Bytes, Size: report.Size, More: report.More, Salvaged: string(f.file)}
	for _, d := range report.Damages {
		result.Damages = append(result.Damages, d.Error())
	}
	if err := a.Emit(result); err != nil || len(result.Damages) == 0 {
		return err
	}
	e := &fault.DataError{Err: fmt.Errorf("%s is damaged", name)}
	switch {
	case report.Records == 0:
		e.Hint = suggest.Try("restore the file from a backup, or begin with another `--data`: no key is readable")
	case f.file == "":
		e.Hint = suggest.Try("`sscli serve --data-check FILE --data NEW` writes what is readable to the file NEW").Fill(suggest.File, name)
	}
	return e
}
