#!/usr/bin/env bash
# A worker of several, one of which leads: as many of these as you like may run, and
# COMMAND runs in one of them at a time. When that one ends, breaks, or is cut off,
# another takes over.
#
#	leader-election.sh NAME COMMAND [ARG...]
#
# COMMAND should run for as long as it leads. It gets TERM when the lead is lost, and
# may write with `sscli set … --fence lock` what only a leader may. Everybody can see
# who leads: `sscli get NAME/leader`. TERM ends the candidacy, and gives the lead back.
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
	# shellcheck disable=SC2016 # that the other bash expands it
	sscli lock run "$name/lock" --ttl "${TTL:-10s}" -- bash -euc '
		echo "$WORKER leads"
		sscli set "$1/leader" "$WORKER" --fence lock >/dev/null
		shift
		exec "$@"
	' leader-election "$name" "$@" &
	child=$!
	code=0
	wait "$child" || code=$?
	while kill -0 "$child" 2>/dev/null; do # a signal ended wait, and not the child
		code=0
		wait "$child" || code=$?
	done
	child=
	case $code in
	3 | 8 | 124) # the broker is away, or the lead was lost: once more
		[ -n "$leaving" ] || sleep 1
		;;
	*) break ;;
	esac
done
exit "$code"
