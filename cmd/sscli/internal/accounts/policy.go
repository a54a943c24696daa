package accounts

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// Policies are the rules of --policy with the attributes of --attributes, which are read again when
// their files change.
type Policies struct {
	app    *app.App
	files  Login
	login  bool   // clients must log in, and so the rules have an effect
	state  string // of the files when they were read last
	watch  sync.WaitGroup
	cancel context.CancelFunc
}

// Policies reads the files of --policy and --attributes, and adds them to o. login is true if clients
// must log in. The result is nil without --policy.
func (f Login) Policies(a *app.App, o *emulator.Options, login bool) (*Policies, error) {
	switch {
	case len(f.Policy) == 0 && f.Attributes != "":
		return nil, fault.Usagef("--attributes without --policy: only the rules of a BrokerAuthorization have attributes")
	case len(f.Policy) == 0:
		return nil, nil
	case len(f.Allow) > 0:
		return nil, fault.Usagef("--policy together with --allow: use one or the other")
	}
	p := &Policies{app: a, files: f, login: login, cancel: func() {}}
	var err error
	if o.Policy, err = p.read(context.Background()); err != nil {
		return nil, &fault.UsageError{Err: err}
	}
	if !login {
		a.Advise("--policy has no effect without a login, as on the broker: every client may do everything",
			suggest.Try("`--users FILE`, `--sat-audience aio-internal`, or `--listen-client-ca FILE`"))
	}
	return p, nil
}

func (p *Policies) read(ctx context.Context) (*emulator.Policy, error) {
	p.state = p.stat()
	var all []*emulator.Policy
	for _, name := range p.files.Policy {
		text, err := files.ReadText(name)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
		one, err := emulator.ParsePolicy(format.Location(name, 0, 0), text)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
		all = append(all, one)
	}
	var attributes emulator.Attributes
	if name := string(p.files.Attributes); name != "" {
		text, err := files.ReadText(name)
		if err == nil {
			attributes, err = emulator.ParseAttributes(format.Location(name, 0, 0), text)
		}
		if err != nil {
			return nil, fmt.Errorf("--attributes: %w", err)
		}
	}
	merged := emulator.MergePolicies(all...)
	if n := len(merged.Check(ctx)); n > 0 {
		p.app.Advise("--policy: "+format.Count(n, "finding"), suggest.Run(append([]string{"sscli", "policy", "check"}, p.files.Policy...)...))
	}
	merged.Attributes = attributes
	return merged, nil
}

// stat returns what shows whether the files have changed.
func (p *Policies) stat() (state string) {
	for _, name := range append(slices.Clone(p.files.Policy), string(p.files.Attributes)) {
		if info, err := os.Stat(name); err == nil {
			state += fmt.Sprintln(info.ModTime().UnixNano(), info.Size())
		} else {
			state += "missing\n"
		}
	}
	return state
}

// Hangups returns a channel that has a value after SIGHUP. If the terminal was closed, SIGHUP ends sscli as usual.
func Hangups(a *app.App) <-chan struct{} {
	hung := make(chan struct{}, 1)
	terminal := hasTerminal()
	a.Signals.Hangups(func() bool {
		if terminal && !hasTerminal() {
			return false
		}
		select {
		case hung <- struct{}{}:
		default: // one is waiting
		}
		return true
	})
	return hung
}

// Watch gives the server the rules anew at SIGHUP and when a file changes, until Close. With reload false,
// SIGHUP ends sscli as usual.
func (p *Policies) Watch(server *emulator.Server, hangup bool) {
	if p == nil {
		return
	}
	const pause = 500 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	var hung <-chan struct{}
	if hangup {
		hung = Hangups(p.app)
	}
	p.watch.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-hung:
			case <-tick.C:
				if p.stat() == p.state {
					continue
				}
			}
			rules, err := p.read(ctx)
			if err != nil {
				p.app.Warn(err.Error() + "; the rules stay as they were")
				continue
			}
			server.SetPolicy(rules)
			effect := "all MQTT clients were disconnected"
			if !p.login {
				effect = "they have no effect without a login"
			}
			p.app.Inform(fmt.Sprintf("new rules from %s; %s", format.Path(p.files.Policy[0]), effect))
		}
	})
}

// Close stops watching the files.
func (p *Policies) Close() {
	if p != nil {
		p.cancel()
		p.watch.Wait()
	}
}

func hasTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	return f.Close() == nil
}
