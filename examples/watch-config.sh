#!/usr/bin/env bash
# Keeps a configuration file as a key says, and tells a program to read it again:
# writes FILE now and at each change of KEY, all of it or nothing of it, then runs
# COMMAND.
#
#	watch-config.sh KEY FILE COMMAND [ARG...]
#	watch-config.sh config/web /etc/web.conf systemctl reload web
#
# It runs until it is ended, over broken connections. While the key is missing the
# file stays as it is.
set -euo pipefail

if [ $# -lt 3 ]; then
	echo 'watch-config.sh: want KEY FILE COMMAND [ARG...]' >&2
	exit 2
fi
key=$1
shift

# What follows runs once for each event, one at a time. get -f replaces the file in
# one step, with every byte as it is; the key may have gone again by then.
# shellcheck disable=SC2016 # that bash expands it
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
	1) exit 0 ;; # no longer there
	*) exit "$code" ;;
	esac
	[ "$before" = "$(cksum "$file")" ] || exec "$@"
' watch-config "$@"
