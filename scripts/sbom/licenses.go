package main

import (
	"fmt"
	"slices"
	"strings"
)

// licenses are the SPDX license expressions of the modules that are linked into the program. They are
// not in what the linker records. TestLicenses compares them with the modules' files.
var licenses = map[string]string{
	"github.com/HdrHistogram/hdrhistogram-go": "MIT",
	"github.com/chzyer/readline":              "MIT",
	"github.com/eclipse/paho.golang":          "EPL-2.0 OR BSD-3-Clause",
	"github.com/fatih/color":                  "MIT",
	"github.com/go-json-experiment/json":      "BSD-3-Clause",
	"github.com/golang-jwt/jwt/v5":            "MIT",
	"github.com/google/uuid":                  "BSD-3-Clause",
	"github.com/gorilla/websocket":            "BSD-2-Clause",
	"github.com/inconshreveable/mousetrap":    "Apache-2.0",
	"github.com/mattn/go-colorable":           "MIT",
	"github.com/mattn/go-isatty":              "MIT",
	"github.com/spf13/cobra":                  "Apache-2.0",
	"github.com/spf13/pflag":                  "BSD-3-Clause",
	"github.com/tidwall/btree":                "MIT",
	"github.com/youmark/pkcs8":                "MIT",
	"go.etcd.io/bbolt":                        "MIT",
	"go.yaml.in/yaml/v3":                      "MIT AND Apache-2.0",
	"golang.org/x/crypto":                     "BSD-3-Clause",
	"golang.org/x/net":                        "BSD-3-Clause",
	"golang.org/x/sys":                        "BSD-3-Clause",
	"golang.org/x/term":                       "BSD-3-Clause",
	"golang.org/x/text":                       "BSD-3-Clause",
	"std":                                     "BSD-3-Clause",
	own:                                       "MIT",
}

// own is the module of this repository.
const own = "github.com/sscli/sscli"

// A license is either one of SPDX's list or an expression.
type license struct {
	License    *licenseID `json:"license,omitempty"`
	Expression string     `json:"expression,omitempty"`
}

type licenseID struct {
	ID string `json:"id"`
}

// licensed adds the license of the module with the given path. Unknown modules, such as the
// replacement of one, are an error.
func (c *component) licensed(path string) error {
	l, ok := licenses[path]
	switch {
	case !ok:
		return fmt.Errorf("module %s: no license known, add it to scripts/sbom/licenses.go", path)
	case strings.Contains(l, " "):
		c.Licenses = []license{{Expression: l}}
	default:
		c.Licenses = []license{{License: &licenseID{ID: l}}}
	}
	return nil
}

// expression returns the license expression of the whole program.
func expression() string {
	var all []string
	for _, l := range licenses {
		if strings.Contains(l, " OR ") {
			all = append(all, "("+l+")")
		} else {
			all = append(all, strings.Split(l, " AND ")...)
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " AND ")
}
