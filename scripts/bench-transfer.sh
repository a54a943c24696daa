#!/usr/bin/env bash
# Measures `sscli export` and `sscli diff FILE` of many keys beside `sscli batch` that gets as
# many from the same store, and `sscli apply FILE` that changes nothing beside export. Exits
# with 1 if a goal is missed.
#
#	scripts/bench-transfer.sh                 three rounds of 1000000 keys, two minutes
#	scripts/bench-transfer.sh -keys 200000    -help lists the flags
#
# Requires Linux and Go.
exec "$(dirname "${BASH_SOURCE[0]}")/bench/run.sh" transfer "$@"
