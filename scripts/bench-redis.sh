#!/usr/bin/env bash
# Measures the Redis port of `sscli serve` beside a Redis server with redis-benchmark: one
# request at a time and pipelines of 64, with and without keyspace notifications, the resident
# memory of a million keys, and how long the notifications of 20,000 keys take that expire at once.
# Exits with 1 if a goal is missed.
#
#	scripts/bench-redis.sh                  five rounds, some minutes
#	scripts/bench-redis.sh -rounds 1 -n 20000 -keys 100000    a short look
#
# Requires Linux, Go, redis-server, redis-cli and redis-benchmark.
exec "$(dirname "${BASH_SOURCE[0]}")/bench/run.sh" redis "$@"
