// Package sscli_test checks what holds for the module as a whole.
package sscli_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sscli/sscli"

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
	return []string{module + "/repl/screentest", module + "/emulator/mosquitto", module + "/redis/redistest", rooms + "apptest", rooms + "via/viatest", rooms + "via/apiservertest", module + "/client/internal/testpeer", module + "/internal/pipenet", module + "/internal/systext"}
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
		p.Tests = slices.Contains(forTests(), p.ImportPath)
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

// arrows are all imports between the packages that ship, as CONTRIBUTING.md draws them: a
// package, and those that it may import. Packages below cmd/sscli/internal are named by
// their path below it.
const arrows = `
client/wire
client/internal/idtable
socket
client/mqtt          client/internal/idtable socket
client/wait
internal/busyfile
internal/textfile    internal/busyfile
client               client/internal/idtable client/mqtt client/wait client/wire internal/textfile internal/busyfile
observe
internal/admission
internal/chunk
internal/glob
internal/neterr
internal/ownerfile
emulator/broker      internal/admission internal/chunk socket
emulator/store       client/wire internal/chunk internal/glob observe
emulator/disk        internal/ownerfile
redis                internal/admission internal/chunk internal/glob observe socket
emulator             client/mqtt client/wire emulator/broker emulator/disk emulator/store internal/admission internal/chunk internal/neterr observe redis
format               observe
repl                 format internal/ownerfile

ahead
atomicfile           internal/ownerfile
filelock
process              signals
passwd               internal/textfile
signals
suggest
terminal             format signals
screen               format terminal
trace                client/mqtt client/wire format internal/ownerfile
config               format atomicfile filelock suggest internal/textfile internal/busyfile
certs                atomicfile config internal/textfile
via                  client process config
operand              repl
help
fault                client client/mqtt client/wire format process config signals suggest terminal via internal/neterr
tune
usage                format config fault internal/textfile
login                client format certs config fault via
outage               client format fault
app                  client client/mqtt client/wait emulator format certs config fault login outage signals suggest terminal trace via
fence                client client/wire format config fault internal/busyfile
accounts             emulator atomicfile certs app config fault passwd internal/textfile internal/busyfile
complete             client format app config operand
bulkread             client client/mqtt client/wait ahead app fault outage tune
jsonfield            format
records              fault format internal/textfile
dataset              format fault records
dataflow             dataset suggest

cmdline              repl app complete config fault help operand suggest format
verb                 client client/wire format repl app bulkread complete fault fence operand usage
directive            client/wait format repl app config fault usage
lineinput            client repl fault internal/textfile
command/call         client client/wire format repl app fault fence verb
command/completion   app complete fault usage
command/del          client format repl app config fault fence verb usage
command/get          client format repl app atomicfile config fault verb usage
command/keynotify    client client/wire repl command/call fault verb
command/scan         client format repl app bulkread config fault suggest verb
command/set          client client/wire format repl app config fault fence verb
command/vdel         client format repl app config fault fence verb
command/batch        client client/wait format repl app fault directive lineinput command/ping signals verb cmdline command/call command/del command/get command/keynotify command/scan command/set command/vdel operand tune usage internal/textfile
command/export       client format atomicfile app complete config bulkread fault tune
command/importcmd    client format app bulkread command/batch lineinput usage
sources              client ahead format repl config fault lineinput records internal/textfile
command/diff         client format app bulkread complete config fault jsonfield sources
command/apply        client client/wire format app bulkread command/diff command/set config fault fence outage guard sources verb usage
command/shell        client client/mqtt client/wire format repl app complete config fault directive signals suggest cmdline operand usage
locklog              client format
command/lock/trace   client format atomicfile app config fault locklog outage signals terminal usage internal/textfile
command/lock/status  client format app bulkread config fault locklog outage signals usage
command/lock         client format command/lock/trace process app config fault fence outage signals client/wire usage command/lock/status
guard                client format app fault verb command/set tune
command/edit         client client/wire format repl process app atomicfile complete config fault jsonfield command/lock terminal guard usage internal/busyfile
command/datasetcmd/check client format app config dataflow dataset fault guard records suggest internal/textfile
command/datasetcmd   client format app command/datasetcmd/check complete config dataset fault fence guard jsonfield records suggest tune usage
command/watch        client format process app complete config fault jsonfield outage signals terminal tune usage
command/explain      client client/wire format app complete config fault fence
command/ping         client client/wait client/wire format app config fault usage
command/serve        client client/mqtt client/wait client/wire emulator emulator/disk redis format atomicfile certs process accounts app config fault requestlog command/ping trace sources tune
command/forward      client format atomicfile certs filelock process app config fault outage via
command/pod          app config fault usage
kubectlplugin        fault
command/gateway      client client/wait client/wire observe redis format certs process app config fault passwd requestlog
command/top          client client/wait client/wire format app bulkread complete config fault screen signals terminal trace
requestlog           client format observe app config fault
command/doctor       client client/mqtt client/wire format app config fault trace via command/ping usage
command/bench        client client/wait client/wire format app config fault usage
command/hlc          client/wire format app fault usage
command/contextcmd   client format app complete config fault usage
topics               format config fault help
command/version      format app usage
command/man          app command/version fault cmdline help usage
statestorecli        client format atomicfile app config fault verb operand

cmd/sscli            format command/apply command/batch command/bench kubectlplugin process app command/contextcmd command/diff command/doctor command/edit command/export command/forward command/gateway command/hlc command/importcmd command/lock command/man command/ping command/serve command/shell signals statestorecli command/top topics verb command/version command/watch command/explain cmdline command/call command/completion command/del command/get command/keynotify command/pod command/scan command/set command/vdel command/datasetcmd
`

const rooms = module + "/cmd/sscli/internal/"

// full returns the import path of a package of arrows.
func full(name string) string {
	if first, _, _ := strings.Cut(name, "/"); slices.Contains([]string{"client", "cmd", "emulator", "format", "internal", "observe", "redis", "repl", "socket"}, first) {
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
		if p.ImportPath == module || under(p.ImportPath, module+"/scripts", module+"/examples") || p.Tests {
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
		cmd      = module + "/cmd/sscli"
		client   = module + "/client"
		wire     = module + "/client/wire"
		mqtt     = module + "/client/mqtt"
		emulator = module + "/emulator"
		broker   = module + "/emulator/broker"
		store    = module + "/emulator/store"
		disk     = module + "/emulator/disk"
		format   = module + "/format"
		redis    = module + "/redis"
		idtable  = module + "/client/internal/idtable"
		repl     = module + "/repl"
		socket   = module + "/socket"
		glob     = module + "/internal/glob"
		admit    = module + "/internal/admission"
		chunk    = module + "/internal/chunk"
		owner    = module + "/internal/ownerfile"
		observe  = module + "/observe"
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
		{"paho's packets are mqtt's", func(p string) bool { return ships(p) && p != mqtt }, direct,
			func(i string) bool { return under(i, paho) }},
		{"client knows no user", func(p string) bool { return p == client }, all,
			func(i string) bool { return under(i, emulator, format, repl, cmd) || flags(i) }},
		{"emulator and client agree on bytes only", func(p string) bool { return under(p, emulator) }, all,
			func(i string) bool { return i == client || under(i, format, repl, cmd) || flags(i) }},
		{"socket stands on the standard library alone", func(p string) bool { return p == socket }, all,
			func(i string) bool { return !isStd(i) }},
		{"observe stands on the standard library alone", func(p string) bool { return p == observe }, all,
			func(i string) bool { return !isStd(i) }},
		{"redis stands on the standard library, admission, chunk, glob, observe and socket", func(p string) bool { return p == redis }, all,
			func(i string) bool {
				return !isStd(i) && i != redis && i != admit && i != chunk && i != glob && i != observe && i != socket
			}},
		{"store stands on the standard library, wire, chunk, glob, observe and btree", func(p string) bool { return p == store }, direct,
			func(i string) bool {
				return !isStd(i) && i != wire && i != chunk && i != glob && i != observe && i != btree
			}},
		{"disk stands on the standard library, ownerfile and bbolt", func(p string) bool { return p == disk }, direct,
			func(i string) bool { return !isStd(i) && i != owner && !under(i, bbolt) }},
		{"bbolt is disk's", func(p string) bool { return own(p) && p != disk }, direct,
			func(i string) bool { return under(i, bbolt) }},
		{"broker stands on the standard library, admission, chunk, socket, btree and websocket", func(p string) bool { return p == broker }, direct,
			func(i string) bool {
				return !isStd(i) && i != admit && i != chunk && i != socket && i != btree && i != websocket
			}},
		{"store knows no network", func(p string) bool { return p == store }, all,
			func(i string) bool { return under(i, "net") }},
		{"format stands on the standard library, observe, color and the widths of characters", func(p string) bool { return p == format }, direct,
			func(i string) bool { return !isStd(i) && i != observe && i != color && i != width }},
		{"repl stands on the standard library, format, ownerfile, JSON v2 and readline", func(p string) bool { return p == repl }, direct,
			func(i string) bool {
				return !isStd(i) && i != format && i != owner && !under(i, jsonV2) && i != readline
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
