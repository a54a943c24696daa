#!/usr/bin/env bash
# Runs a program for Windows on Linux, with Wine in a root of its own.
#
#	scripts/wine.sh --build             create the root, once (800 MB, one to two minutes), and try it
#	scripts/wine.sh --built             only say whether there is a root
#	scripts/wine.sh FILE.exe [ARG...]   run a program in it
#
# Wine comes from Debian trixie, because Go's runtime needs version 10. debootstrap(8) installs it below
# ~/.cache/sscli-wine; WINE_CACHE names another directory. Requires Linux on amd64, debootstrap, which --build
# installs as root if there is apt-get, unshare(1) and the right to mount.
#
# Programs run without TMPDIR: with a directory of Linux in it, Wine aborts.
set -euo pipefail
cache=${WINE_CACHE-${XDG_CACHE_HOME-$HOME/.cache}/sscli-wine}
root=$cache/root

fail() {
	echo "wine.sh: $1" >&2
	exit 1
}

make_root() {
	[ -e "$root/.done" ] && return
	mkdir -p "$cache"
	rm -rf --one-file-system "$root"
	local keys=/usr/share/keyrings/debian-archive-keyring.gpg mirror=${DEBIAN_MIRROR-}
	if { ! command -v debootstrap || [ ! -e "$keys" ]; } >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
		apt-get -q update >&2 && apt-get -q install -y --no-install-recommends debootstrap debian-archive-keyring >&2
	fi
	[ -e "$keys" ] || fail "missing $keys, try: apt-get install debian-archive-keyring"
	command -v debootstrap >/dev/null || fail 'requires debootstrap, try: apt-get install debootstrap'
	command -v apt-get >/dev/null || [ -n "$mirror" ] || fail 'requires apt-get, or DEBIAN_MIRROR'
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
	unset TMPDIR
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
--built) [ -e "$root/.done" ] ;;
--build)
	[ "$(uname -sm)" = 'Linux x86_64' ] || fail 'requires Linux on amd64'
	unshare --mount true 2>/dev/null || fail 'requires unshare(1) and the right to mount'
	make_root
	# The first start writes the registry.
	(wine cmd /c exit) >/dev/null 2>&1 || fail 'Wine does not start, try: scripts/wine.sh cmd /c exit'
	;;
'' | -*)
	echo 'usage: wine.sh --build | --built | FILE.exe [ARG...]' >&2
	exit 2
	;;
*) wine "$@" ;;
esac
