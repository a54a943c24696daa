#!/usr/bin/env bash
# Measures `sscli watch` beside mosquitto_sub, both on `sscli serve`: notifications per second, the latency of a
# paced stream, and the memory of a watch of many keys. Exits with 1 if a goal is missed.
#
#	scripts/bench-watch.sh                  five rounds, about a minute and a half
#	scripts/bench-watch.sh -rounds 9        -help lists the flags
#
# Requires Linux, Go and mosquitto_sub.
exec "$(dirname "${BASH_SOURCE[0]}")/bench/run.sh" watch "$@"
