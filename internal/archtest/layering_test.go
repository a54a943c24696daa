// Package archtest checks what holds for the module as a whole.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sscli/sscli"

// TestMain runs the tests in the root of the module.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A goPackage is what the Go command knows of a package of this module.
type goPackage struct {
	ImportPath string
	Doc        string // the first sentence of its comment
	Imports    []string
	Deps       []string // and the imports of Imports, and so on

	TestImports, XTestImports []string

	Tests bool // nothing but tests imports it
}

// forTests are packages that help tests and do not ship.
func forTests() []string {
	return []string{rooms + "apptest"}
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,Deps,TestImports,XTestImports", "./...")
	out, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%v: %s", err, e.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	var pkgs []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		p.Tests = under(p.ImportPath, module+"/internal/testkit") || slices.Contains(forTests(), p.ImportPath)
		pkgs = append(pkgs, p)
	}
}

// under tells whether a package is one of trees or below one.
func under(path string, trees ...string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool { return path == tree || strings.HasPrefix(path, tree+"/") })
}

func isStd(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// arrows are all imports between the packages that ship, as docs/development/packages.md draws them: a
// package, and those that it may import. Packages below cmd/sscli/internal are named by
// their path below it.
const arrows = `
internal/files
internal/idtable
internal/keyboard
internal/socket
internal/mqtt        internal/idtable internal/socket
internal/wait
internal/retry       internal/wait
internal/wire
internal/pemfile     internal/files
client               internal/files internal/idtable internal/mqtt internal/retry internal/wait internal/wire internal/pemfile
internal/admission   internal/socket
internal/httpport    internal/admission
internal/glob
internal/shrinkmap
internal/neterr
internal/broker      internal/socket internal/admission internal/shrinkmap
internal/disk        internal/files
internal/observe
internal/redis       internal/socket internal/admission internal/glob internal/shrinkmap internal/observe
internal/store       internal/wire internal/glob internal/shrinkmap internal/observe
internal/yamltext
internal/policy      internal/wire internal/glob internal/yamltext
internal/pipenet
emulator             internal/mqtt internal/wire internal/admission internal/neterr internal/broker internal/disk internal/glob internal/observe internal/redis internal/store internal/policy internal/pipenet internal/wait
format               internal/wire internal/observe
repl                 internal/files internal/wait internal/keyboard format

signals
process              internal/files internal/wait signals
suggest              format
terminal             internal/files internal/wait format signals
trace                internal/files internal/mqtt internal/wire format
config               internal/files client internal/yamltext format suggest
certs                internal/files internal/pemfile config
via                  client process suggest config
fault                internal/mqtt internal/wire client internal/neterr format signals process suggest terminal config via emulator
help                 format config fault
usage                internal/files internal/glob format repl suggest config fault
app                  internal/files internal/mqtt internal/retry internal/wire client internal/observe internal/policy emulator format signals suggest terminal trace config certs via fault
accounts             internal/files internal/pemfile internal/policy emulator format suggest config certs fault usage app
complete             client format config usage app
exchange             internal/mqtt internal/wait internal/wire client format suggest fault app
jsonfield            format
dataset              internal/files internal/yamltext format suggest fault
cmdline              format repl suggest config fault help usage app complete
verb                 internal/files internal/wire client format repl suggest config fault usage app complete exchange
directive            internal/wait format repl config fault usage app
lineinput            internal/files client repl suggest fault dataset
sources              internal/files client internal/yamltext format repl suggest config fault exchange dataset lineinput
statestorecli        internal/files client format config fault usage app verb

command/ping         internal/wait internal/wire client format fault usage app
command/basics       internal/files internal/wire client format repl suggest config fault usage app exchange verb
command/batch        internal/files client format config repl signals suggest fault complete usage app exchange cmdline verb directive lineinput command/ping command/basics
command/export       internal/files client format suggest config fault app complete exchange
command/importcmd    client format config suggest usage app exchange verb lineinput command/batch complete
command/diff         client format suggest config fault app complete exchange jsonfield sources
command/apply        internal/wire internal/glob client format suggest config fault usage app exchange verb sources command/diff
command/shell        internal/mqtt internal/wire client format repl signals suggest config fault help usage app complete cmdline directive lineinput
command/lock/locklog client format
command/lock         internal/files internal/wire client format signals process suggest terminal config fault complete usage app exchange verb lineinput command/lock/locklog
command/edit         internal/files internal/wire client format repl process suggest terminal config fault usage app complete jsonfield verb command/lock
command/watch        client format signals process suggest terminal config fault usage app complete jsonfield
command/explain      internal/wire client format suggest config fault app complete verb
command/serve        internal/httpport internal/mqtt client internal/admission internal/disk internal/glob internal/redis emulator format signals process suggest config certs fault usage app verb accounts sources
command/gateway      internal/retry internal/wire client internal/admission internal/observe internal/redis format process suggest config fault usage app accounts
command/top          internal/keyboard internal/retry internal/wait internal/wire client format signals suggest terminal trace fault usage app complete exchange
command/check        internal/httpport internal/files internal/glob internal/wait internal/yamltext client internal/admission format jsonfield config certs fault usage suggest app accounts complete exchange dataset command/ping
command/doctor       internal/files internal/mqtt internal/wire client format trace config certs via fault usage app command/ping
command/bench        internal/wait internal/wire client format suggest config fault usage app
command/hlc          internal/wire format fault usage app
command/contextcmd   client format suggest config fault usage app complete
command/cluster      internal/files client format process suggest config certs via fault usage app
command/self         format fault help usage app cmdline
command/policycmd    internal/files internal/wire internal/yamltext internal/policy internal/mqtt internal/observe format repl config fault app
command/datasetcmd   internal/files client format suggest terminal config fault usage app complete jsonfield dataset verb

cmd/sscli            format signals process terminal help app cmdline verb statestorecli command/ping command/basics command/batch command/export command/importcmd command/diff command/apply command/shell command/lock command/edit command/watch command/explain command/serve command/gateway command/top command/doctor command/check command/bench command/hlc command/contextcmd command/cluster command/self command/policycmd command/datasetcmd
`

const rooms = module + "/cmd/sscli/internal/"

// full returns the import path of a package of arrows.
func full(name string) string {
	if first, _, _ := strings.Cut(name, "/"); slices.Contains([]string{"client", "cmd", "emulator", "format", "internal", "repl"}, first) {
		return module + "/" + name
	}
	return rooms + name
}

// drawn reads arrows.
func drawn(t *testing.T) map[string][]string {
	to := make(map[string][]string)
	for line := range strings.Lines(arrows) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		from := full(words[0])
		if _, twice := to[from]; twice {
			t.Errorf("%s is drawn twice", from)
		}
		to[from] = []string{}
		for _, w := range words[1:] {
			to[from] = append(to[from], full(w))
		}
	}
	return to
}

// TestArrows holds the packages that ship to the arrows of the picture, and the picture to
// the packages: an arrow that nothing uses is not drawn.
func TestArrows(t *testing.T) {
	to := drawn(t)
	seen := make(map[string]bool)
	for _, p := range packages(t) {
		if under(p.ImportPath, module+"/scripts", module+"/examples", module+"/internal/archtest") || p.Tests {
			continue
		}
		allowed, known := to[p.ImportPath]
		if !known {
			t.Errorf("%s is not in the picture", p.ImportPath)
		}
		seen[p.ImportPath] = true
		for _, i := range p.Imports {
			if under(i, module) && !slices.Contains(allowed, i) {
				t.Errorf("%s imports %s: no arrow leads there", p.ImportPath, i)
			}
		}
		for _, i := range allowed {
			if !slices.Contains(p.Imports, i) {
				t.Errorf("%s does not import %s, but an arrow leads there", p.ImportPath, i)
			}
		}
	}
	for from := range to {
		if !seen[from] {
			t.Errorf("%s is in the picture and nowhere else", from)
		}
	}
}

// TestLayers holds the packages to what they may know of the world.
func TestLayers(t *testing.T) {
	const (
		shrink   = module + "/internal/shrinkmap"
		cmd      = module + "/cmd/sscli"
		client   = module + "/client"
		wire     = module + "/internal/wire"
		mqtt     = module + "/internal/mqtt"
		emulator = module + "/emulator"
		broker   = module + "/internal/broker"
		store    = module + "/internal/store"
		disk     = module + "/internal/disk"
		format   = module + "/format"
		redis    = module + "/internal/redis"
		idtable  = module + "/internal/idtable"
		repl     = module + "/repl"
		socket   = module + "/internal/socket"
		glob     = module + "/internal/glob"
		admit    = module + "/internal/admission"
		files    = module + "/internal/files"
		observe  = module + "/internal/observe"
		btree    = "github.com/tidwall/btree"
		bbolt    = "go.etcd.io/bbolt"
		cobra    = "github.com/spf13/cobra"
		pflag    = "github.com/spf13/pflag"
		color    = "github.com/fatih/color"
		paho     = "github.com/eclipse/paho.golang"
		readline = "github.com/chzyer/readline"
		jsonV2   = "github.com/go-json-experiment/json"
		width    = "golang.org/x/text/width"

		websocket = "github.com/gorilla/websocket"
	)
	own := func(path string) bool { return under(path, module) }
	// What is measured may stand beside other clients.
	ships := func(path string) bool {
		return own(path) && !under(path, module+"/scripts")
	}
	flags := func(path string) bool { return under(path, cobra, pflag) }
	direct := func(p goPackage) []string { return p.Imports }
	all := func(p goPackage) []string { return p.Deps }
	tests := func(p goPackage) []string { return slices.Concat(p.Imports, p.TestImports, p.XTestImports) }
	rules := []struct {
		what     string
		applies  func(path string) bool
		imports  func(goPackage) []string
		mayNotBe func(path string) bool
	}{
		{"wire stands on the standard library alone", func(p string) bool { return p == wire }, all,
			func(i string) bool { return !isStd(i) }},
		{"mqtt knows no store", func(p string) bool { return p == mqtt }, all,
			func(i string) bool { return own(i) && i != idtable && i != socket || flags(i) }},
		{"idtable stands on the standard library alone", func(p string) bool { return p == idtable }, all,
			func(i string) bool { return !isStd(i) }},
		// The emulator is tested with paho's own clients.
		{"of paho only the packets", func(p string) bool { return ships(p) && !under(p, emulator) }, tests,
			func(i string) bool { return under(i, paho) && i != paho+"/packets" }},
		{"paho's packets are mqtt's", func(p string) bool { return ships(p) && p != mqtt && !under(p, module+"/internal/testkit") }, direct,
			func(i string) bool { return under(i, paho) }},
		{"client knows no user", func(p string) bool { return p == client }, all,
			func(i string) bool { return under(i, emulator, format, repl, cmd) || flags(i) }},
		{"emulator and client agree on bytes only", func(p string) bool { return under(p, emulator) }, all,
			func(i string) bool { return i == client || under(i, format, repl, cmd) || flags(i) }},
		{"socket stands on the standard library alone", func(p string) bool { return p == socket }, all,
			func(i string) bool { return !isStd(i) }},
		{"observe stands on the standard library alone", func(p string) bool { return p == observe }, all,
			func(i string) bool { return !isStd(i) }},
		{"redis stands on the standard library, admission, glob, observe, socket and shrinkmap", func(p string) bool { return p == redis }, all,
			func(i string) bool {
				return !isStd(i) && i != redis && i != admit && i != glob && i != observe && i != socket && i != shrink
			}},
		{"store stands on the standard library, wire, glob, observe, shrinkmap and btree", func(p string) bool { return p == store }, direct,
			func(i string) bool {
				return !isStd(i) && i != wire && i != glob && i != observe && i != shrink && i != btree
			}},
		{"disk stands on the standard library, files and bbolt", func(p string) bool { return p == disk }, direct,
			func(i string) bool { return !isStd(i) && i != files && !under(i, bbolt) }},
		{"bbolt is disk's, and of the benchmark that counts its commits", func(p string) bool { return own(p) && p != disk && p != module+"/scripts/bench" }, direct,
			func(i string) bool { return under(i, bbolt) }},
		{"broker stands on the standard library, admission, socket, shrinkmap, btree and websocket", func(p string) bool { return p == broker }, direct,
			func(i string) bool {
				return !isStd(i) && i != admit && i != socket && i != shrink && i != btree && i != websocket
			}},
		{"policy knows neither network nor flags", func(p string) bool { return p == module+"/internal/policy" }, all,
			func(i string) bool { return under(i, "net") || flags(i) }},
		{"store knows no network", func(p string) bool { return p == store }, all,
			func(i string) bool { return under(i, "net") }},
		{"format stands on the standard library, wire, observe, color, the widths of characters and JSON v2", func(p string) bool { return p == format }, direct,
			func(i string) bool {
				return !isStd(i) && i != wire && i != observe && i != color && i != width && !under(i, jsonV2)
			}},
		{"repl stands on the standard library, format, files, wait, keyboard, JSON v2 and readline", func(p string) bool { return p == repl }, direct,
			func(i string) bool {
				return !isStd(i) && i != format && i != files && i != module+"/internal/wait" && i != module+"/internal/keyboard" && !under(i, jsonV2) && i != readline
			}},
		{"readline is repl's", func(p string) bool { return own(p) && p != repl }, direct,
			func(i string) bool { return i == readline }},
		{"only the command knows flags", func(p string) bool { return own(p) && !under(p, cmd) }, all, flags},
	}
	pkgs := packages(t)
	for _, r := range rules {
		found := false
		for _, p := range pkgs {
			if !r.applies(p.ImportPath) {
				continue
			}
			found = true
			for _, i := range r.imports(p) {
				if r.mayNotBe(i) {
					t.Errorf("%s: %s imports %s", r.what, p.ImportPath, i)
				}
			}
		}
		if !found {
			t.Errorf("%s: no such package", r.what)
		}
	}
}

// TestGoDoc: what go doc shows of the two libraries cites nothing that their users do not have.
func TestGoDoc(t *testing.T) {
	for _, name := range []string{"client", "emulator"} {
		out, err := exec.Command("go", "doc", "-all", "./"+name).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			comment := strings.HasPrefix(line, "    ") || !strings.HasPrefix(line, "\t") && !strings.Contains(line, "=")
			if strings.Contains(line, "protocol.md") || comment && (strings.Contains(line, "internal/") || strings.Contains(line, "[wire.") || strings.Contains(line, "package mqtt")) {
				t.Errorf("go doc ./%s: %s", name, line)
			}
		}
	}
}
