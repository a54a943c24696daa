#!/usr/bin/env bash
# Lets 200 clients publish and subscribe with random QoS while their connections are cut, taken
# over, closed and stalled. Checks that no acknowledged message is lost, that no message arrives
# twice at QoS 2, that the order holds, and that the broker's memory returns to its first size.
#
#	scripts/soak.sh              ten minutes
#	scripts/soak.sh -d 30s       see -help for more
#
# Requires Go. Prints a line every 10 s.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec go run ./scripts/soak "$@"
