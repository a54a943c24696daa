#!/usr/bin/env bash
# Measures single requests beside mosquitto_rr, redis-cli and paho's client, start-up
# beside a Go program that does nothing, and the emulator beside Mosquitto. Exits with 1
# if a goal is missed.
#
#	scripts/bench-request.sh                  about two minutes
#	scripts/bench-request.sh -rounds 1000     -help lists the flags
#
# Requires Go, mosquitto, mosquitto_rr, redis-server and redis-cli.
exec "$(dirname "${BASH_SOURCE[0]}")/bench/run.sh" request "$@"
