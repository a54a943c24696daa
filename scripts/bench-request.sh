#!/usr/bin/env bash
# Measures single requests beside mosquitto_rr and redis-cli, and start-up beside a Go
# program that does nothing. Exits with 1 if a goal is missed.
#
#	scripts/bench-request.sh                  about half a minute
#	scripts/bench-request.sh -rounds 1000     -help lists the flags
#
# Requires Linux, Go, mosquitto, mosquitto_rr, redis-server and redis-cli.
exec "$(dirname "${BASH_SOURCE[0]}")/bench/run.sh" request "$@"
