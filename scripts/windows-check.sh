#!/usr/bin/env bash
# Runs the tests for Windows on Linux, with Wine. It prints each test that failed or was skipped,
# with the reason, a table of the packages, and as its last line `N passed, N failed, N skipped`.
#
#	scripts/windows-check.sh                            all packages
#	scripts/windows-check.sh -short                     where Windows differs most, about three minutes
#	scripts/windows-check.sh -run=Close ./internal/mqtt   flags, and packages, of go test
#
# scripts/wine.sh brings Wine, once, and says what it requires. It also runs a single program.
#
# Tests skip what Windows does not have: Mosquitto, redis-server, sh with its tools, Unix terminals,
# signals. Wine is not Windows: it has no symbolic links, and its console is a Linux terminal.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/wine.sh --build
log=$(mktemp)
trap 'rm -f "$log"' EXIT
last=${WINE_CACHE-${XDG_CACHE_HOME-$HOME/.cache}/sscli-wine}/last.log

# tests runs go test with these flags and packages. It tests one package at a time, because all
# programs share one wineserver, and tests measure time.
tests() {
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go test -v -p 1 -vet=off -timeout 10m -exec "$PWD/scripts/wine.sh" "$@" >>"$log" 2>&1 || true
}

# The scripts that -short runs: commands after --, files, encodings and logins.
scripts='apply|batch-load|client-certificate|config|context|edit|encodings|export|get|import|lock-steps|login|serve-load|serve-password|watch-command'

# The packages left out test Unix, the source code or the examples.
mapfile -t all < <(go list ./... | grep -v -e /scripts/ -e /examples -e '/sscli$' -e /internal/testkit/ -e /internal/archtest)
flags=() packages=()
for arg; do
	case $arg in ./*) packages+=("$arg") ;; *) flags+=("$arg") ;; esac
done
if [ ${#packages[@]} -gt 0 ]; then
	tests "${packages[@]}" "${flags[@]}"
elif [ "$*" = -short ]; then
	mapfile -t packages < <(printf '%s\n' "${all[@]}" |
		grep -E '/internal/(config|files|mqtt|neterr|process|sources|terminal|verb)$')
	tests "${packages[@]}"
	tests -run '^(TestLockChaos|TestConsoleClosed|TestPrivateFiles)$' ./cmd/sscli -chaos-rounds=4
	tests -run "^TestScript\$/^($scripts)\$" ./cmd/sscli
else
	tests "${all[@]}" ./cmd/sscli "${flags[@]}"
fi

# The reason stands in the line above the test's name.
grep -a -E -B1 '^ *--- SKIP' "$log" | grep -a -v -e '^--$' -e '^=== ' || true
grep -a -E '^ *--- FAIL|^ *FAIL: |^panic:|^FAIL.*(build failed|[0-9]s$)' "$log" || true
cp "$log" "$last"
echo "The whole output: $last"
# A package that panics or exceeds the timeout has no line for the test that did it.
awk '
	/^ *--- PASS/ { p++ }
	/^ *--- FAIL/ { f++ }
	/^ *--- SKIP/ { s++ }
	/^(ok|FAIL)[ \t]+[^ \t]/ {
		if ($1 == "FAIL" && !f) f = 1
		if (p + f + s) printf "%5d passed %3d failed %3d skipped  %s\n", p, f, s, $2
		passed += p; failed += f; skipped += s
		p = f = s = 0
	}
	END {
		printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
		exit failed > 0
	}' "$log"
