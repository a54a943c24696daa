#!/usr/bin/env bash
# One deployment at a time, however many pipelines run: waits for the lock of the
# target, deploys, and notes the revision so that nobody whose lock ran out can
# overwrite it.
#
#	deploy-lock.sh TARGET REVISION [COMMAND [ARG...]]
#
# Without COMMAND it only says what it would do. Exit codes: those of COMMAND; 75 if
# another pipeline held the lock for ten minutes.
set -euo pipefail
# shellcheck source=/dev/null
source "${SSCLI_BASH:-/usr/share/sscli/sscli.bash}"

if [ $# -lt 2 ]; then
	echo 'deploy-lock.sh: want TARGET REVISION [COMMAND [ARG...]]' >&2
	exit 2
fi

deploy() {
	local target=$1 revision=$2 current
	shift 2
	ss_get current "deploy/$target/revision" none
	if [ "$current" = "$revision" ]; then
		echo "$target: $revision is there already"
		return
	fi
	echo "$target: from $current to $revision"
	# COMMAND is ended (TERM, then KILL) before the lock can be lost.
	"${@:-true}"
	# The store refuses this from whoever has lost the lock since.
	sscli -q set "deploy/$target/revision" "$revision" --fence lock >/dev/null
}

ss_with_lock "deploy/$1/lock" --wait "${DEPLOY_WAIT:-10m}" -- deploy "$@"
