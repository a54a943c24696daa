package serve

import (
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/redis"
)

type redisFlags struct {
	listen   config.Text
	notify   config.Text
	insecure bool
}

func (f *redisFlags) bind(fs *pflag.FlagSet) {
	fs.Var(&f.listen, "redis", "`HOST:PORT` to listen on for Redis clients too; port 0 means any free port")
	fs.Var(&f.notify, "notify-keyspace-events", "`FLAGS` of the notifications to Redis clients, such as KEA (default: none)")
	fs.BoolVar(&f.insecure, "redis-insecure", false, "allow clients without a login on an address of --redis that is not loopback")
}

// check returns a usage error if the flags are invalid, or if anybody could use the port. login is true
// if clients must log in.
func (f redisFlags) check(login bool) error {
	if f.listen == "" {
		if f.notify != "" || f.insecure {
			return fault.Usagef("--notify-keyspace-events and --redis-insecure require --redis")
		}
		return nil
	}
	loopback, err := config.IsLoopback(string(f.listen))
	if err != nil {
		return fault.Usagef("--redis %.64q: expected HOST:PORT, such as 127.0.0.1:6379", f.listen)
	}
	if err := redis.CheckNotify(string(f.notify)); err != nil {
		return fault.Usagef("--notify-keyspace-events: %w", err)
	}
	if loopback || login || f.insecure {
		return nil
	}
	return fault.Usagef("--redis %s: anybody who reaches that address could use the store: add --users, or --redis-insecure", f.listen)
}

// serve starts the port of --redis in front of an attached store, and returns its URL, which is empty
// without --redis.
func (f redisFlags) serve(attached *emulator.Attached, o emulator.Options) (url string, err error) {
	if f.listen == "" {
		return "", nil
	}
	url, err = attached.ServeRedis(emulator.RedisOptions{
		Listen: string(f.listen), Notify: string(f.notify), TLS: o.TLS, CheckLogin: o.CheckLogin, Log: o.Log, Observe: o.Observe,
	})
	if err != nil {
		return "", &fault.UsageError{Err: err, Hint: suggest.Try("another `--redis`, such as 127.0.0.1:0 for any free port")}
	}
	return url, nil
}
