#!/usr/bin/env bash
# Runs one deployment at a time, however many pipelines run: waits for the lock of the target,
# deploys, and stores the revision with a fencing token, so that a pipeline whose lock has
# expired cannot overwrite it.
#
#	deploy-lock.sh TARGET REVISION [COMMAND [ARG...]]
#
# Without COMMAND it stores the revision and deploys nothing. Exits with the exit code of
# COMMAND, or with 75 if another pipeline held the lock for ten minutes.
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
	# sscli stops COMMAND (TERM, then KILL) before another can acquire the lock.
	"${@:-true}"
	# This writes nothing if the lock has been lost since.
	sscli -q set "deploy/$target/revision" "$revision" --fence lock >/dev/null
}

ss_with_lock "deploy/$1/lock" --wait "${DEPLOY_WAIT:-10m}" -- deploy "$@"
