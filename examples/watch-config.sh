#!/usr/bin/env bash
# Keeps a configuration file equal to a key, and reloads a program: writes FILE now and at
# each change of KEY, in one step, then runs COMMAND.
#
#	watch-config.sh KEY FILE COMMAND [ARG...]
#	watch-config.sh config/web /etc/web.conf systemctl reload web
#
# It runs until it is stopped, also over broken connections. While the key is missing, the
# file stays as it is.
set -euo pipefail

if [ $# -lt 3 ]; then
	echo 'watch-config.sh: want KEY FILE COMMAND [ARG...]' >&2
	exit 2
fi
key=$1
shift

# The inner script runs once for each event, one at a time. get -f replaces the file in one
# step, with the exact bytes; by then the key may be gone again.
# shellcheck disable=SC2016 # the inner bash expands it
exec sscli watch "$key" --keep-going -- bash -c '
	case $SSCLI_EVENT_OP in
	initial | resync | set) ;;
	*) exit 0 ;;
	esac
	file=$1
	shift
	before=$(cksum "$file" 2>&1) || :
	code=0
	sscli get -f "$file" -- "$SSCLI_EVENT_KEY" >&2 || code=$?
	case $code in
	0) ;;
	1) exit 0 ;; # gone again
	*) exit "$code" ;;
	esac
	[ "$before" = "$(cksum "$file")" ] || exec "$@"
' watch-config "$@"
