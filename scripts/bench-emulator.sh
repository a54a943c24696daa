#!/usr/bin/env bash
# Measures `sscli serve` beside a Redis server: requests per second on one connection with
# 1, 16, 64 and 256 in flight, beside redis-benchmark, and the resident memory of a million
# keys. Exits with 1 if a goal is missed.
#
#	scripts/bench-emulator.sh                     about two minutes
#	scripts/bench-emulator.sh -rounds 9 -keys 0   -help lists the flags
#
# Requires Linux, Go, redis-server, redis-cli and redis-benchmark.
exec "$(dirname "${BASH_SOURCE[0]}")/bench/run.sh" emulator "$@"
