#!/usr/bin/env bash
# Tests how many round trips a single command takes. Counts the commands that fail on Mosquitto
# with its default settings, with nodelay and with TLS 1.3, and on the emulator. Measures requests
# one after the other beside paho's client. Exits with 1 if a flight failed or the goal is missed.
#
#	scripts/bench-flights.sh                1,000 flights each, about half a minute
#	scripts/bench-flights.sh -n 10000       -help lists the flags
#
# Requires Go and mosquitto.
exec "$(dirname "${BASH_SOURCE[0]}")/bench/run.sh" flights "$@"
