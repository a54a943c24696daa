#!/usr/bin/env bash
# Runs the tests for Windows on Linux, with Wine, and ends with `N passed, N failed, N skipped`.
# Above that line it prints each test that failed or was skipped, with the reason.
# A number of tests still fail with Wine: tests of system texts, links and modes, and tests that
# need bash.
#
#	scripts/windows-check.sh                            all packages, about 20 minutes
#	scripts/windows-check.sh -short ./client/... ./repl   flags and packages of go test
#	scripts/windows-check.sh -exec FILE.exe [ARG...]    a single program
#	scripts/windows-check.sh -root                      only creates the root with Wine
#
# Wine comes from Debian trixie, because Go's runtime needs version 10. debootstrap(8) installs it
# into a root below ~/.cache/sscli-wine, once (800 MB, two minutes); WINE_CACHE names another
# directory. Requires Linux on amd64, Go, debootstrap, unshare(1) and the right to mount.
set -euo pipefail
self=$(realpath "${BASH_SOURCE[0]}")
cache=${WINE_CACHE-${XDG_CACHE_HOME-$HOME/.cache}/sscli-wine}
root=$cache/root

make_root() {
	[ -e "$root/.done" ] && return
	mkdir -p "$cache"
	rm -rf --one-file-system "$root"
	local keys=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -e "$keys" ] || { echo "windows-check.sh: missing $keys, try: apt-get install debian-archive-keyring" >&2; return 1; }
	local mirror=${DEBIAN_MIRROR-}
	# shellcheck disable=SC2016 # apt's own variable
	[ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep '/debian/$' | head -n 1)
	debootstrap --variant=minbase --keyring="$keys" --include=wine64,wine trixie "$root" "$mirror" >"$cache/debootstrap.log" ||
		{ echo "windows-check.sh: debootstrap could not make $root, see $cache/debootstrap.log" >&2; return 1; }
	: >"$root/.done"
}

# wine runs a program inside the root, where this system's files have the same names. The mounts
# end with the program.
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
-root) make_root && exit ;;
esac

make_root
cd "$(dirname "$self")/.."
flags=() packages=()
for arg; do
	case $arg in -*) flags+=("$arg") ;; *) packages+=("$arg") ;; esac
done
if [ ${#packages[@]} -eq 0 ]; then
	# The scripts, the examples and the tests of the whole tree are about Unix or the source.
	mapfile -t packages < <(go list ./... | grep -v -e /scripts/ -e /examples -e '/sscli$' -e /emulator/mosquitto)
	packages+=(./cmd/sscli)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
(wine cmd /c exit) >/dev/null 2>&1 || true # the first start writes the registry
# One package at a time: Wine has one server for all programs, and tests measure time.
GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go test -v -p 1 -vet=off -timeout 10m -exec "$self -exec" "${flags[@]}" "${packages[@]}" >"$log" 2>&1 || true

count() { grep -c -E "$1" "$log" || true; }
# The reason stands in the line above the test's name.
grep -E -B1 '^ *--- SKIP' "$log" | grep -v '^--$' || true
grep -E '^ *--- FAIL|^panic:|^FAIL.*(build failed|[0-9]s$)' "$log" || true
failed=$(count '^ *--- FAIL')
# A package that panics or exceeds the timeout has no line for the test that did it.
packages_failed=$(count '^FAIL	')
[ "$failed" -gt 0 ] || failed=$packages_failed
cp "$log" "$cache/last.log"
echo "The whole output: $cache/last.log"
echo "$(count '^ *--- PASS') passed, $failed failed, $(count '^ *--- SKIP') skipped"
[ "$packages_failed" -eq 0 ]
