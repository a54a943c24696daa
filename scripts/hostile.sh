#!/usr/bin/env bash
# Attacks `sscli serve` as a client on its network could: with slow requests, with requests that
# fill the memory, with floods and wrong bits. Prints a row for each attack: the peak memory of the
# server, the slowest PING of a client outside the attack, the slowest PING of an idle server, which
# shows how busy the machine is, and what the attacker got.
#
#	scripts/hostile.sh                 about ten minutes, on an otherwise idle machine
#	scripts/hostile.sh -short          a tenth of each load, about a minute; also on a busy machine
#	scripts/hostile.sh -only SCAN      the attacks with this word in their name
#
# Requires Linux and Go. Exits with 1 if a bound is broken: a PING of over 100 ms (2 s with -short,
# which allows for other programs on the machine), or, with
# --limit memory=64MiB, more memory than 64 MiB, the stored values and another 64 MiB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ulimit -n "$(ulimit -Hn)"
exec go run ./scripts/hostile "$@"
