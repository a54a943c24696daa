#!/usr/bin/env bash
# Runs a test for longer than check.sh does, and as with SSCLI_CHECK=full.
#
#	scripts/long.sh data [ROUNDS]          kills a store that is kept in a file (serve --data) under
#	                                       load, and checks that the next one has each acknowledged
#	                                       write, and no write that was not requested: 1000 rounds,
#	                                       about two minutes
#	scripts/long.sh locks [ROUNDS [TTL]]   kills, stops and disconnects processes of `sscli lock run`,
#	                                       guards too, and checks that no command runs without its
#	                                       lock, or beside another: 300 rounds with locks of 2500ms,
#	                                       about five minutes. A round in which the machine stalled is
#	                                       repeated; too many of these rounds fail the run
#	scripts/long.sh transfer [KEYS]        moves keys and values of random bytes from one store into
#	                                       another with export and import, compares the stores, and
#	                                       prints the peak memory of both commands for all keys and
#	                                       for a tenth of the keys, which must not differ much: 100000
#	                                       keys, half a minute
#	scripts/long.sh stores [ROUNDS]        stops attached stores (serve --attach), cuts them off, starts
#	                                       them together, and restarts their broker, and checks that
#	                                       never two of them serve: 20 rounds, about eight minutes
#
# Requires Go; locks and transfer also Linux, locks also flock(1), stores also Mosquitto.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case ${1-} in
data) run=(./emulator -run '^TestCrash$' -crash-rounds "${2-1000}") ;;
locks) run=(./cmd/sscli -run '^TestLockChaos$' -chaos-rounds "${2-300}" -chaos-ttl "${3-2500ms}") ;;
transfer) run=(./cmd/sscli -run '^TestExportIntoImport$' -transfer-keys "${2-100000}") ;;
stores) run=(./cmd/sscli -run '^TestAttach(Stopped|Together|BrokerRestarts|Cut)$' -attach-rounds "${2-20}") ;;
*)
	echo 'long.sh: want data, locks, transfer or stores; see the comment at its top' >&2
	exit 2
	;;
esac
SSCLI_CHECK=full exec go test "${run[0]}" -count 1 -timeout 0 -v "${run[@]:1}"
