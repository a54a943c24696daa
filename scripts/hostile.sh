#!/usr/bin/env bash
# Attacks `sscli serve` as a client on its network could: with slow requests, with requests that
# fill the memory, with floods and wrong bits. Prints a row for each attack: the peak memory of the
# server, the slowest PING or GET of a client outside the attack, the same on an idle server, which
# shows how busy the machine is, and what the attacker got.
#
#	scripts/hostile.sh                 about fifteen minutes, on an otherwise idle machine
#	scripts/hostile.sh -full           attacks on memory also with --limit memory=256MiB, and without a limit
#	scripts/hostile.sh -short          a tenth of each load, about a minute; also on a busy machine
#	scripts/hostile.sh -only SCAN      the attacks with this word in their name
#	scripts/hostile.sh -soak 10m       clients that break off, instead of attacks; see below
#	scripts/hostile.sh -help           the other flags
#
# Exits with 1 if a bound is broken: a PING or GET of over 100 ms (with -short, which allows for other
# programs on the machine, 2 s in which the server had a CPU), or more memory than the limit, the stored
# values and another 64 MiB. The limit is 64 MiB (--limit memory) for attacks on memory, else the default.
#
# With -soak, 200 clients publish and subscribe with random QoS while their connections are cut,
# taken over, closed and stalled. A line every 10 s shows what happened. Exits with 1 if an acknowledged
# message is lost, arrives twice at QoS 2 or out of order, or if the broker keeps memory.
#
# Requires Linux and Go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ulimit -n "$(ulimit -Hn)"
exec go run ./scripts/hostile "$@"
