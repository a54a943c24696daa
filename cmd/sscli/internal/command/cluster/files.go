package cluster

import (
	"bytes"
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/via"
	"github.com/sscli/sscli/internal/files"
)

// secrets writes the CA and the token to files that other commands read.
type secrets struct {
	a          *app.App
	dir        string
	token      func(context.Context) ([]byte, error) // nil if no token comes from the cluster
	written    []byte                                // the token in the file
	refreshing sync.WaitGroup
}

// writeCA writes the broker's CA to a file, and returns the file's name. If the CA does not come from
// the cluster, writeCA returns s.CAFile, which may be empty.
func (f *secrets) writeCA(ctx context.Context, way *via.Way, s config.Settings) (string, error) {
	text, err := way.CA(ctx)
	if err != nil || text == nil {
		return s.CAFile, err
	}
	name := filepath.Join(f.dir, "ca.crt")
	return name, files.Write(name, text, 0o600)
}

func (f *secrets) tokenFile() string { return filepath.Join(f.dir, "token") }

// writeToken writes a current token to a file, unless the file already has this token, and returns the
// file's name. If the token does not come from the cluster, writeToken returns s.SATFile, which may be
// empty.
func (f *secrets) writeToken(ctx context.Context, s config.Settings) (string, error) {
	if f.token == nil {
		return s.SATFile, nil
	}
	token, err := f.token(ctx)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(token, f.written) {
		if err := files.Write(f.tokenFile(), append(bytes.Clone(token), '\n'), 0o600); err != nil {
			return "", err
		}
		f.written = token
	}
	return f.tokenFile(), nil
}

// refresh replaces the token in the file before the token expires, until ctx ends.
func (f *secrets) refresh(ctx context.Context) {
	if f.token == nil {
		return
	}
	tick := time.NewTicker(client.DefaultTokenPoll)
	defer tick.Stop()
	warned := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		_, err := f.writeToken(ctx, config.Settings{})
		if ctx.Err() != nil {
			return
		}
		if err != nil && !warned {
			f.a.Warn("no new token: " + fault.Message(err))
		}
		warned = err != nil
	}
}
