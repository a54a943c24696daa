package main

import (
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// fencing are the flags of every command that writes.
type fencing struct {
	token config.Text
	force bool
}

// fenceOfLock is the --fence that means the lock run around us.
const fenceOfLock = "lock"

func (f *fencing) bind(fs *pflag.FlagSet) {
	fs.Var(&f.token, "fence", "fencing `TOKEN`: the version of the lock that protects the key, or lock for that of the lock run around this command")
	fs.BoolVar(&f.force, "force-fence", false, "get past the fencing token of the key, and fence out whoever holds its lock")
}

func (f *fencing) options() (client.WriteOptions, error) {
	switch {
	case f.force && f.token != "":
		return client.WriteOptions{}, usage("--fence together with --force-fence: want one of them")
	case f.token == "":
		return client.WriteOptions{}, nil
	case f.token == fenceOfLock:
		token, err := currentFence()
		return client.WriteOptions{Fence: token}, err
	}
	token, err := wire.ParseToken(string(f.token))
	if err != nil {
		return client.WriteOptions{}, &usageError{err: err, hint: "the token as the lock's reply gave it, unchanged; or --fence lock inside of sscli lock run"}
	}
	return client.WriteOptions{Fence: token}, nil
}
