#!/usr/bin/env bash
# Measures `sscli batch` into `sscli serve` beside `redis-cli < file` and `redis-cli --pipe`
# into a Redis server: sets per second, with many in flight and one at a time, CPU time, and
# the peak memory of a long and a very long batch. Also beside paho's client, both through a Mosquitto with a store
# attached. Exits with 1 if a goal is missed.
#
#	scripts/bench-batch.sh                  five rounds, two minutes
#	scripts/bench-batch.sh -rounds 9        -help lists the flags
#
# Requires Linux, Go, mosquitto, redis-server and redis-cli.
exec "$(dirname "${BASH_SOURCE[0]}")/bench/run.sh" batch "$@"
