package requestlog

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
)

// Logger returns a logger for servers. It prints warnings with [app.App.Warn] and information
// with [app.App.Inform]; debug records only with -vv.
func Logger(a *app.App) *slog.Logger { return slog.New(logHandler{app: a}) }

// A logHandler prints a record as its message with the attributes as NAME=VALUE.
type logHandler struct {
	app   *app.App
	attrs []slog.Attr
	group string // prefix of names
}

func (h logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && !h.app.Settings.Quiet || h.app.Settings.Verbose > 1
}

func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	line := []byte(r.Message)
	for _, a := range h.attrs {
		line = appendAttr(line, "", a)
	}
	r.Attrs(func(a slog.Attr) bool {
		line = appendAttr(line, h.group, a)
		return true
	})
	if r.Level >= slog.LevelWarn {
		h.app.Warn(string(line), "")
	} else {
		h.app.Inform(string(line))
	}
	return nil
}

// appendAttr appends an attribute, unless its value is nil.
func appendAttr(line []byte, group string, a slog.Attr) []byte {
	a.Value = a.Value.Resolve()
	if a.Equal(slog.Attr{}) || a.Value.Kind() == slog.KindAny && a.Value.Any() == nil {
		return line
	}
	text := a.Value.String()
	for _, r := range text {
		if r <= ' ' || r == '"' {
			text = strconv.Quote(text)
			break
		}
	}
	return append(line, " "+group+a.Key+"="+text...)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	all := append([]slog.Attr{}, h.attrs...)
	for _, a := range attrs {
		a.Key = h.group + a.Key
		all = append(all, a)
	}
	h.attrs = all
	return h
}

func (h logHandler) WithGroup(name string) slog.Handler {
	if name != "" {
		h.group += name + "."
	}
	return h
}
