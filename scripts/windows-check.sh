#!/usr/bin/env bash
# Runs the tests for Windows on Linux, with Wine. It prints each test that failed or was skipped,
# with the reason, a table of the packages, and as its last line `N passed, N failed, N skipped`.
#
#	scripts/windows-check.sh                            all packages
#	scripts/windows-check.sh -short                     where Windows differs most, about three minutes
#	scripts/windows-check.sh -run=Close ./internal/mqtt   flags, and packages, of go test
#	scripts/windows-check.sh -exec FILE.exe [ARG...]    a single program
#	scripts/windows-check.sh -root                      only creates the root with Wine, and tries it
#	scripts/windows-check.sh -built                     only says whether there is a root
#
# Tests skip what Windows does not have: Mosquitto, redis-server, sh with its tools, Unix terminals,
# signals. Wine is not Windows: it has no symbolic links, and its console is a Linux terminal.
#
# Wine comes from Debian trixie, because Go's runtime needs version 10. debootstrap(8) installs it
# into a root below ~/.cache/sscli-wine, once (800 MB, one to two minutes); WINE_CACHE names another
# directory. Requires Linux on amd64, Go, debootstrap, unshare(1) and the right to mount.
set -euo pipefail
self=$(realpath "${BASH_SOURCE[0]}")
cache=${WINE_CACHE-${XDG_CACHE_HOME-$HOME/.cache}/sscli-wine}
root=$cache/root

fail() {
	echo "windows-check.sh: $1" >&2
	exit 1
}

make_root() {
	[ -e "$root/.done" ] && return
	mkdir -p "$cache"
	rm -rf --one-file-system "$root"
	local keys=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -e "$keys" ] || fail "missing $keys, try: apt-get install debian-archive-keyring"
	command -v debootstrap >/dev/null || fail 'requires debootstrap'
	command -v apt-get >/dev/null || [ -n "${DEBIAN_MIRROR-}" ] || fail 'requires apt-get, or DEBIAN_MIRROR'
	local mirror=${DEBIAN_MIRROR-}
	# shellcheck disable=SC2016 # apt's own variable
	[ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep '/debian/$' | head -n 1)
	debootstrap --variant=minbase --keyring="$keys" --include=wine64,wine trixie "$root" "$mirror" >"$cache/debootstrap.log" ||
		fail "debootstrap could not make $root, see $cache/debootstrap.log"
	: >"$root/.done"
}

# wine runs a program inside the root, with directories of this system mounted at the same paths. The
# mounts end with the program.
wine() {
	export WINEPREFIX=$cache/prefix WINEDEBUG=${WINEDEBUG--all} WINEDLLOVERRIDES='mscoree,mshtml='
	export WINE_DIR=$PWD WINE_ROOT=$root
	mkdir -p "$WINEPREFIX"
	# shellcheck disable=SC2016 # the shells inside expand these
	exec unshare --mount bash -euc '
		for dir in /proc /dev /tmp /home /root "$(git rev-parse --show-toplevel 2>/dev/null || pwd)" "$(dirname "$WINEPREFIX")"; do
			[ -d "$dir" ] || continue
			mkdir -p "$WINE_ROOT$dir"
			mount --rbind "$dir" "$WINE_ROOT$dir"
		done
		exec chroot "$WINE_ROOT" /bin/sh -c "cd \"\$WINE_DIR\" && exec /usr/lib/wine/wine64 \"\$@\"" wine "$@"
	' bash "$@"
}

case ${1-} in
-exec) shift && wine "$@" ;;
-built)
	[ -e "$root/.done" ]
	exit
	;;
esac

[ "$(uname -sm)" = 'Linux x86_64' ] || fail 'requires Linux on amd64'
unshare --mount true 2>/dev/null || fail 'requires unshare(1) and the right to mount'
make_root
# The first start writes the registry.
(wine cmd /c exit) >/dev/null 2>&1 || fail 'Wine does not start, try: scripts/windows-check.sh -exec cmd /c exit'
[ "${1-}" != -root ] || exit 0

cd "$(dirname "$self")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# tests runs go test with these flags and packages. It tests one package at a time, because all
# programs share one wineserver, and tests measure time.
tests() {
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go test -v -p 1 -vet=off -timeout 10m -exec "$self -exec" "$@" >>"$log" 2>&1 || true
}

# The scripts that -short runs: commands after --, files, encodings and logins.
scripts='apply|batch-load|client-certificate|config|context|edit|encodings|export|get|import|lock-steps|login|serve-load|serve-password|watch-command'

# The packages left out test Unix, the source code or the examples.
mapfile -t all < <(go list ./... | grep -v -e /scripts/ -e /examples -e '/sscli$' -e /internal/testkit/)
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
cp "$log" "$cache/last.log"
echo "The whole output: $cache/last.log"
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
