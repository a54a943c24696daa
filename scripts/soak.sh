#!/usr/bin/env bash
# Lets 200 clients publish and subscribe with random QoS, while their connections are cut,
# taken over, left and stalled, and checks that nothing that was acknowledged is lost,
# that nothing comes twice at QoS 2, that the order holds, and that the broker's memory
# returns to where it was.
#
#	scripts/soak.sh              ten minutes
#	scripts/soak.sh -d 30s       see -help for more
#
# It wants Go, and prints a line each 10 s.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec go run ./scripts/soak "$@"
