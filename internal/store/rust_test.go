package store

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/glob"
)

// rustJudge prints how the crate `glob` matches pairs of lines, a pattern and a key: error, true or false.
const rustJudge = `
use std::io::BufRead;
fn main() {
    let input = std::io::stdin();
    let mut lines = input.lock().lines().map(|l| l.unwrap());
    while let Some(pattern) = lines.next() {
        let key = lines.next().unwrap();
        match glob::Pattern::new(&pattern) {
            Err(_) => println!("error"),
            Ok(p) => println!("{}", p.matches(&key)),
        }
    }
}
`

// debianCrates is the path of the crate in Debian's librust-glob-dev.
const debianCrates = "/usr/share/cargo/registry/glob-*/src/lib.rs"

// TestScanLikeRust compares the patterns of SCAN with the crate that the real store uses according to a draft
// of Microsoft's.
func TestScanLikeRust(t *testing.T) {
	rustc, err := exec.LookPath("rustc")
	if err != nil {
		t.Skip("rustc is not installed")
	}
	crates, _ := filepath.Glob(debianCrates) // the pattern is valid
	if dir := os.Getenv("GLOB_CRATE"); dir != "" {
		crates = []string{filepath.Join(dir, "src/lib.rs")}
	}
	if len(crates) == 0 {
		t.Skip("the crate glob is not installed: want librust-glob-dev, or its directory in GLOB_CRATE")
	}
	dir := t.TempDir()
	run := func(words ...string) {
		t.Helper()
		cmd := exec.Command(rustc, words...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("rustc: %v\n%s", err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "judge.rs"), []byte(rustJudge), 0o600); err != nil {
		t.Fatal(err)
	}
	run("--edition", "2018", "--cap-lints", "allow", "-O", "--crate-type", "rlib", "--crate-name", "glob", crates[0])
	run("--edition", "2018", "-O", "--extern", "glob=libglob.rlib", "judge.rs")

	var input bytes.Buffer
	var pairs [][2]string
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		pair := [2]string{randomText(random, "aab/*?[]!-é*/", 8), randomText(random, "aab/]!-é", 8)}
		pairs = append(pairs, pair)
		fmt.Fprintf(&input, "%s\n%s\n", pair[0], pair[1])
	}
	judge := exec.Command(filepath.Join(dir, "judge"))
	judge.Stdin = &input
	out, err := judge.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	counts := map[string]int{}
	for _, pair := range pairs {
		lines.Scan()
		want := lines.Text()
		counts[want]++
		got := "error"
		if p, ok := glob.Parse(pair[0]); ok {
			got = fmt.Sprint(p.Match([]byte(pair[1])))
			if got == "true" && !strings.HasPrefix(pair[1], string(p.Prefix())) {
				t.Errorf("pattern %q, key %q: the prefix is %q", pair[0], pair[1], p.Prefix())
			}
		}
		if got != want {
			t.Fatalf("pattern %q, key %q: got %s, want %s", pair[0], pair[1], got, want)
		}
	}
	t.Log(counts)
}

func randomText(random *rand.Rand, letters string, most int) string {
	all := []rune(letters)
	var b strings.Builder
	for range random.IntN(most) {
		b.WriteRune(all[random.IntN(len(all))])
	}
	return b.String()
}
