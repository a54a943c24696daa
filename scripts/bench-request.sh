#!/usr/bin/env bash
# Measures what single requests cost, beside mosquitto_rr, redis-cli, a Go program that
# does nothing, and paho's client; and the emulator beside Mosquitto. Starts its
# brokers and ends them. Ends with 1 if a goal is missed.
#
#	scripts/bench-request.sh                  about two minutes
#	scripts/bench-request.sh -rounds 1000     see scripts/bench/request for the flags
#
# It wants Go, mosquitto, mosquitto_rr, redis-server and redis-cli, and is no part of
# check.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PATH:/usr/local/sbin:/usr/sbin

for tool in go mosquitto mosquitto_rr redis-server redis-cli; do
	if ! command -v "$tool" >/dev/null; then
		echo "bench-request.sh: no $tool on the PATH" >&2
		exit 2
	fi
done

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# As for a release.
CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w' -o "$tmp/sscli" ./cmd/sscli
go build -buildvcs=false -o "$tmp/bench" ./scripts/bench/request
"$tmp/bench" -sscli "$tmp/sscli" "$@"
