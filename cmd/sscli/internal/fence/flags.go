package fence

import (
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
)

// fencing are the flags of every command that writes.
type Flags struct {
	token config.Text
	Force bool
}

// fenceOfLock is the --fence that means the lock run around us.
const fenceOfLock = "lock"

func (f *Flags) Bind(fs *pflag.FlagSet) {
	fs.Var(&f.token, "fence", "fencing `TOKEN`: the version of the lock that protects the key, or lock for that of the lock run around this command")
	fs.BoolVar(&f.Force, "force-fence", false, "get past the fencing token of the key, and fence out whoever holds its lock")
}

func (f *Flags) Options() (client.WriteOptions, error) {
	switch {
	case f.Force && f.token != "":
		return client.WriteOptions{}, explain.Usagef("--fence together with --force-fence: want one of them")
	case f.token == "":
		return client.WriteOptions{}, nil
	case f.token == fenceOfLock:
		token, err := currentFence()
		return client.WriteOptions{Fence: token}, err
	}
	token, err := wire.ParseToken(string(f.token))
	if err != nil {
		return client.WriteOptions{}, &explain.UsageError{Err: err, Hint: "the token as the lock's reply gave it, unchanged; or --fence lock inside of sscli lock run"}
	}
	return client.WriteOptions{Fence: token}, nil
}
