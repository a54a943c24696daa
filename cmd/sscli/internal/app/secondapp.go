package app

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// InContext returns an App for a second connection: to the broker of the context called name, or with that
// URL. It resolves the settings as -c or -u does, and keeps the flags in fs that are not connection flags. source is
// the flag that gave the name, for errors. InContext returns the same errors as
// [App.ConfigureConnection].
func (a *App) InContext(ctx context.Context, fs *pflag.FlagSet, name, source string) (*App, error) {
	given := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(given)
	set := map[string]string{"context": name}
	if strings.Contains(name, "://") {
		set = map[string]string{"url": name}
	}
	if a.Settings.ContextFile != "" {
		set["config"] = a.Settings.ContextFile
	}
	fs.Visit(func(f *pflag.Flag) {
		if f.Name == "config" || given.Lookup(f.Name) != nil && !slices.Contains(config.ConnectionFlags(), f.Name) {
			set[f.Name] = f.Value.String()
		}
	})
	for flag, value := range set {
		if err := given.Set(flag, value); err != nil {
			return nil, err
		}
	}
	other := &App{Commands: a.Commands, Topics: a.Topics, Build: a.Build, Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Env: a.Env, Signals: a.Signals, LogsResults: a.LogsResults, Forms: a.Forms}
	err := other.ConfigureConnection(ctx, given)
	if unknown, ok := errors.AsType[*config.UnknownContextError](err); ok {
		unknown.Source = source
	}
	if err != nil {
		return nil, err
	}
	if s := &other.Settings; s.ClientID == a.Settings.ClientID && s.Address == a.Settings.Address {
		s.ClientID = "" // with the same id, each connection would take over the other
	}
	return other, nil
}
