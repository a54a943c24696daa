#!/bin/sh
# Installs sscli and its completions in a dev container. The options of devcontainer-feature.json are the variables
# VERSION and PROGRAM. SSCLI_PREFIX takes the place of /usr/local.
set -eu
cd "$(dirname "$0")"
# shellcheck source=release.sh
. ./release.sh

prefix=${SSCLI_PREFIX:-/usr/local}
if [ -n "${PROGRAM-}" ]; then
	program=$PROGRAM
	[ -f "$program" ] || fail "PROGRAM $program: no such file in $PWD"
else
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	install_release "${VERSION:-latest}" "$dir"
	program=$dir/bin/sscli
fi
mkdir -p "$prefix/bin"
cp "$program" "$prefix/bin/sscli"
chmod 755 "$prefix/bin/sscli"

# completion SHELL FILE
completion() {
	mkdir -p "$prefix/share/${2%/*}"
	"$prefix/bin/sscli" completion "$1" >"$prefix/share/$2"
}
completion bash bash-completion/completions/sscli
completion zsh zsh/site-functions/_sscli
completion fish fish/vendor_completions.d/sscli.fish
"$prefix/bin/sscli" version
