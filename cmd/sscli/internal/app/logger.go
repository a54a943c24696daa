package app

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
)

// Logger returns a logger for servers. It prints warnings and errors with [App.Warn], and other
// records with [App.Inform]. It prints debug records only with -vv.
func (a *App) Logger() *slog.Logger {
	h := &logHandler{app: a}
	h.with = func(out *bytes.Buffer) slog.Handler {
		return slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: onlyAttrs})
	}
	return slog.New(h)
}

// onlyAttrs removes the time, the level and the message of a record, and attributes that are nil.
func onlyAttrs(groups []string, a slog.Attr) slog.Attr {
	builtin := len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey)
	if builtin || a.Value.Kind() == slog.KindAny && a.Value.Any() == nil {
		return slog.Attr{}
	}
	return a
}

// A logHandler prints a record as its message, followed by the attributes as NAME=VALUE.
type logHandler struct {
	app  *App
	with func(out *bytes.Buffer) slog.Handler // returns a handler that writes attributes to out
}

func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && !h.app.Settings.Quiet || h.app.Settings.Verbose > 1
}

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	var attrs bytes.Buffer
	if err := h.with(&attrs).Handle(ctx, r); err != nil {
		return err
	}
	line := strings.TrimSpace(r.Message + " " + attrs.String())
	if r.Level >= slog.LevelWarn {
		h.app.Warn(line, "")
	} else {
		h.app.Inform(line)
	}
	return nil
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.app, func(out *bytes.Buffer) slog.Handler { return h.with(out).WithAttrs(attrs) }}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.app, func(out *bytes.Buffer) slog.Handler { return h.with(out).WithGroup(name) }}
}
