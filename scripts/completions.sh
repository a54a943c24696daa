#!/usr/bin/env bash
# Writes the completions of the shells to completions/, where releases take them
# from. With --check: says whether they are current, and changes nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1-}" in
'' | --check) ;;
*)
	echo "completions.sh: ${1}: want --check or nothing" >&2
	exit 2
	;;
esac

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

go run ./cmd/sscli completion bash >"$tmp/sscli.bash"
go run ./cmd/sscli completion zsh >"$tmp/_sscli"
go run ./cmd/sscli completion fish >"$tmp/sscli.fish"
go run ./cmd/sscli completion powershell >"$tmp/sscli.ps1"
bash -n "$tmp/sscli.bash"

if [ "${1-}" = --check ]; then
	if ! diff -r completions "$tmp"; then
		echo "completions/ is not current: run scripts/completions.sh" >&2
		exit 1
	fi
	exit
fi
mkdir -p completions
cp "$tmp"/* completions/
