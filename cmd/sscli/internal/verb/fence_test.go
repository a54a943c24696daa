package verb

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// parse returns the write options that args set.
func parse(t *testing.T, args ...string) (client.WriteOptions, error) {
	t.Helper()
	var f FenceFlags
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Bind(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.Options(os.LookupEnv)
}

// TestFile: --fence lock uses the newest token in the file. After Empty the file has no token.
func TestFile(t *testing.T) {
	f := NewFenceFile()
	if err := f.Create(); err != nil {
		t.Fatal(err)
	}
	t.Setenv(EnvFenceFile, f.Path)
	wantLost := func(when string) {
		t.Helper()
		if o, err := parse(t, "--fence", "lock"); !errors.Is(err, client.ErrLockLost) {
			t.Errorf("%s: %+v, %v, want ErrLockLost", when, o, err)
		}
	}
	wantLost("before the first token")
	for _, token := range []string{"1696374425000:0:StateStore", "1696374427500:1:StateStore"} {
		if err := f.Write(token); err != nil {
			t.Fatal(err)
		}
		if o, err := parse(t, "--fence", "lock"); err != nil || o.Fence.String() != token {
			t.Errorf("%v, %v, want %s", o.Fence, err, token)
		}
	}
	if info, err := os.Stat(f.Path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may use the file: %v, %v", info.Mode(), err)
	}
	if err := f.Empty(); err != nil {
		t.Fatal(err)
	}
	if err := f.Write("1696374427500:2:StateStore"); err != nil {
		t.Fatal(err)
	}
	wantLost("after Empty")
	if err := os.WriteFile(f.Path, []byte("no token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantLost("with something else in the file")
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(f.Path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	wantLost("after Remove")
}

// TestEmptyWithoutRoom: Empty takes the token away also where no new file can be created, as on a full disk.
func TestEmptyWithoutRoom(t *testing.T) {
	f := NewFenceFile()
	if err := f.Create(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Remove() }()
	t.Setenv(EnvFenceFile, f.Path)
	if err := f.Write("1696374425000:0:StateStore"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(f.Path+".next", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Empty(); err != nil {
		t.Error(err)
	}
	if o, err := parse(t, "--fence", "lock"); !errors.Is(err, client.ErrLockLost) {
		t.Errorf("%+v, %v, want ErrLockLost", o, err)
	}
	if err := os.Remove(f.Path + ".next"); err != nil {
		t.Fatal(err)
	}
	if err := f.Write("1696374427500:1:StateStore"); err != nil {
		t.Fatal(err)
	}
	if o, err := parse(t, "--fence", "lock"); !errors.Is(err, client.ErrLockLost) {
		t.Errorf("a late token: %+v, %v, want ErrLockLost", o, err)
	}
}

func TestFlags(t *testing.T) {
	t.Setenv(EnvFenceFile, "")
	for _, args := range [][]string{{"--fence", "x"}, {"--fence", "lock"}, {"--fence", "1:0:a", "--force-fence"}} {
		if o, err := parse(t, args...); !fault.IsA[*fault.UsageError](err) {
			t.Errorf("%q: %+v, %v, want a usage error", args, o, err)
		}
	}
	if o, err := parse(t); err != nil || !o.Fence.IsZero() {
		t.Errorf("no flags: %+v, %v", o, err)
	}
}
