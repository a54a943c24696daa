#!/usr/bin/env bash
# Moves keys and values of random bytes from one store into another with export and import,
# compares the stores, and prints the peak memory of both commands for all keys and for a tenth of
# the keys. Exits with 1 if the memory grows with the keys. The tests move 20000 keys.
#
#	scripts/transfer.sh          100000 keys, half a minute
#	scripts/transfer.sh 1000000
#
# Requires Linux and Go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec go test ./cmd/sscli -run '^TestExportIntoImport$' -count 1 -timeout 0 -v -transfer-keys "${1-100000}"
