package fence

import (
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// Flags are the fencing flags of a command that writes.
type Flags struct {
	token config.Text
	Force bool // --force-fence
}

// fenceOfLock is the value of --fence for the token of the surrounding lock run.
const fenceOfLock = "lock"

// Bind adds the flags to fs.
func (f *Flags) Bind(fs *pflag.FlagSet) {
	fs.Var(&f.token, "fence", "fencing `TOKEN`: the version of the lock that protects the key, or lock for the token of the surrounding lock run")
	fs.BoolVar(&f.Force, "force-fence", false, "get past the fencing token of the key, and fence out the holder of its lock")
}

// Options returns the options that the flags stand for. With --fence lock it reads the fence file, so
// call it right before sending.
func (f *Flags) Options() (client.WriteOptions, error) {
	switch {
	case f.Force && f.token != "":
		return client.WriteOptions{}, fault.Usagef("--fence and --force-fence: use one of them")
	case f.token == "":
		return client.WriteOptions{}, nil
	}
	token, err := Token(string(f.token))
	return client.WriteOptions{Fence: token}, err
}

// Token returns the token that the value of --fence stands for. For lock it reads the fence
// file.
func Token(text string) (wire.Version, error) {
	if text == fenceOfLock {
		return currentFence()
	}
	token, err := wire.ParseToken(text)
	if err != nil {
		return wire.Version{}, &fault.UsageError{Err: err, Hint: "the token as the lock's reply gave it, unchanged; or --fence lock in a command of sscli lock run"}
	}
	return token, nil
}
