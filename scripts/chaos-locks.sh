#!/usr/bin/env bash
# Kills, stops and disconnects processes of `sscli lock run`, guards too, and checks that no
# command runs without its lock, or beside another. The tests run 20 rounds. A round in which the
# machine stalled is repeated; too many of these rounds fail the run.
#
#	scripts/chaos-locks.sh          300 rounds, about five minutes
#	scripts/chaos-locks.sh 2000
#	scripts/chaos-locks.sh 2000 1500ms    with locks of this TTL
#
# Requires Linux, Go and flock(1).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
SSCLI_CHECK=full exec go test ./cmd/sscli -run '^TestLockChaos$' -count 1 -timeout 0 -v -chaos-rounds "${1-300}" -chaos-ttl "${2-2500ms}"
