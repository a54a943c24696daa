#!/usr/bin/env bash
# Kills a store that is kept in a file (serve --data) under load, and checks that the next one
# has each acknowledged write, and no write that was not requested. The tests run 20
# rounds.
#
#	scripts/crash-data.sh          1000 rounds, about two minutes
#	scripts/crash-data.sh 20000
#
# Requires Go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
SSCLI_CHECK=full exec go test ./emulator -run '^TestCrash$' -count 1 -timeout 0 -v -crash-rounds "${1-1000}"
