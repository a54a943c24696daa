#!/usr/bin/env bash
# Saves the values of a list of keys, and writes them back.
#
#	backup-restore.sh save KEYS-FILE > BACKUP
#	backup-restore.sh restore < BACKUP
#
# KEYS-FILE has one key per line, as `sscli scan` prints them (with C escapes). BACKUP has
# one JSON object per line, whatever bytes the values have. Missing keys are left out and
# reported, and the exit code is then 1. Expiry and fencing tokens cannot be read, so they
# are not saved.
set -euo pipefail

case "${1-}" in
save)
	# Each line becomes a line of a batch: get "KEY".
	sed -e '/^$/d' -e 's/"/\\"/g' -e 's/.*/get "&"/' <"$2" |
		sscli -q batch -o json - | {
		while IFS= read -r line; do
			case $line in
			*'"found":true'*) printf '%s\n' "$line" ;;
			*) printf 'missing: %s\n' "$line" >&2 ;;
			esac
		done
	}
	;;
restore)
	exec sscli -q batch --load -
	;;
*)
	echo 'backup-restore.sh: want save KEYS-FILE or restore' >&2
	exit 2
	;;
esac
