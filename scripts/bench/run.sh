#!/usr/bin/env bash
# run.sh NAME ARG... builds the benchmark scripts/bench/NAME and runs it. Exits with 1 if
# a goal is missed, with 2 if the benchmark could not be run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PATH=$PATH:/usr/local/sbin:/usr/sbin # of mosquitto

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -buildvcs=false -o "$tmp/bench" "./scripts/bench/$1" || exit 2
"$tmp/bench" "${@:2}"
