#!/usr/bin/env bash
# Runs one of several workers, of which one leads. Start as many workers as you like: only the
# leader runs COMMAND. When the leader ends, crashes, or loses its connection, another worker
# takes over.
#
#	leader-election.sh NAME COMMAND [ARG...]
#
# COMMAND should run for as long as it leads. It gets TERM when the lead is lost. With
# `sscli set … --fence lock` it writes keys that only a leader may write. `sscli get NAME/leader`
# shows who leads. TERM ends this worker and gives up the lead.
set -euo pipefail

if [ $# -lt 2 ]; then
	echo 'leader-election.sh: want NAME COMMAND [ARG...]' >&2
	exit 2
fi
name=$1
shift
export WORKER="${WORKER:-$(hostname)-$$}"

child=
leaving=
trap 'leaving=yes; [ -z "$child" ] || kill -TERM "$child" || :' TERM INT
while [ -z "$leaving" ]; do
	# shellcheck disable=SC2016 # the inner bash expands it
	sscli lock run "$name/lock" --ttl "${TTL:-10s}" -- bash -euc '
		echo "$WORKER leads"
		sscli set "$1/leader" "$WORKER" --fence lock >/dev/null
		shift
		exec "$@"
	' leader-election "$name" "$@" &
	child=$!
	code=0
	wait "$child" || code=$?
	while kill -0 "$child" 2>/dev/null; do # a signal ended wait, not the child
		code=0
		wait "$child" || code=$?
	done
	child=
	case $code in
	3 | 8 | 124) # the broker is unreachable, or the lead was lost: try again
		[ -n "$leaving" ] || sleep 1
		;;
	*) break ;;
	esac
done
exit "$code"
