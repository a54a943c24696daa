#!/usr/bin/env bash
# Kills, stops and cuts off processes of `sscli lock run`, and checks that no command runs
# without its lock, or at the same time as another. The tests run 20 rounds.
#
#	scripts/chaos-locks.sh          300 rounds, about five minutes
#	scripts/chaos-locks.sh 2000
#
# Requires Linux, Go and flock(1).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec go test ./cmd/sscli -run '^TestLockChaos$' -count 1 -timeout 0 -v -chaos-rounds "${1-300}"
