#!/usr/bin/env bash
# Writes the shell completions to completions/, from which releases take them. With
# --check, reports whether they are current and changes nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1-}" in
'' | --check) ;;
*)
	echo "completions.sh: $1: want --check or nothing" >&2
	exit 2
	;;
esac

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/completions"
go build -buildvcs=false -o "$tmp/sscli" ./cmd/sscli
"$tmp/sscli" completion bash >"$tmp/completions/sscli.bash"
"$tmp/sscli" completion zsh >"$tmp/completions/_sscli"
"$tmp/sscli" completion fish >"$tmp/completions/sscli.fish"
"$tmp/sscli" completion powershell >"$tmp/completions/sscli.ps1"
bash -n "$tmp/completions/sscli.bash"

if [ "${1-}" = --check ]; then
	if ! diff -r completions "$tmp/completions"; then
		echo "completions/ is not current: run scripts/completions.sh" >&2
		exit 1
	fi
	exit
fi
mkdir -p completions
cp "$tmp/completions"/* completions/
