#!/usr/bin/env bash
# Measures sscli beside programs that do the same work, and beside an earlier sscli. Writes a
# Markdown table of figures, ratios and goals to standard output, and details to standard error. Only
# ratios mean something, and only within one run on an otherwise idle machine.
#
#	scripts/bench.sh >table.md              all groups that need no cluster and no etcd, about 20 minutes
#	scripts/bench.sh request watch          these groups; -help lists them
#	scripts/bench.sh -only P8 emulator      the rows with this text
#	scripts/bench.sh -rounds 1 -scale 0.02  a short look, which says nothing about the goals
#	scripts/bench.sh -full attacks          the attacks of hostile.sh in full, about ten minutes
#	scripts/cluster.sh scripts/bench.sh via
#	scripts/bench.sh --against main~5       the sscli of this commit beside this one, each as server
#	                                        and client, at least six rounds; at most 15 minutes, and
#	                                        without the groups growth and attacks unless named
#
# Exits with 1 if a goal is missed, which does not stop it, and with 2 if it could not be run.
# All servers listen on loopback and end with it.
#
# Requires Linux, Go, and for most groups mosquitto and its clients, redis-server, redis-cli and
# redis-benchmark; for the group takeover etcd and etcdctl; for via what cluster.sh requires.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PATH:/usr/local/sbin:/usr/sbin # of mosquitto
ulimit -n "$(ulimit -Hn)"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -buildvcs=false -o "$tmp/bench" ./scripts/bench || exit 2
code=0
"$tmp/bench" "$@" || code=$?
exit $code
