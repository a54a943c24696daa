#!/usr/bin/env bash
# Kills, stops and cuts off processes of `sscli lock run`, and looks that no command
# lives that does not hold its lock, or beside another. The tests do 20 rounds of it.
#
#	scripts/chaos-locks.sh          300 rounds, about five minutes
#	scripts/chaos-locks.sh 2000
#
# It wants Linux, Go and flock(1).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec go test ./cmd/sscli -run '^TestLockChaos$' -count 1 -timeout 0 -v -chaos-rounds "${1-300}"
