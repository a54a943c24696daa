#!/usr/bin/env bash
# Runs on a Mac what a change needs there: check.sh, the tests of the guard many times, and
# `lock run` with sscli killed. It ends with what to try by hand.
#
#	scripts/macos-check.sh          about 20 minutes
#	scripts/macos-check.sh -locks   only `lock run`, half a minute
#
# Requires Go. Works on Linux too, for a change of this script.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ "$(uname)" = Darwin ] || echo "macos-check.sh: this is $(uname), and not macOS" >&2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/sscli" ./cmd/sscli
export PATH=$work:$PATH WORK=$work

# killed_round kills sscli. Its guard must end the command, and what the command started.
# shellcheck disable=SC2016 # the shell inside expands these
killed_round='
	rm -f "$WORK"/*.pid
	sscli -q lock run build --ttl 4s -- sh -c "sleep 60 & echo \$! >\"$WORK/child.pid\"; echo \$\$ >\"$WORK/command.pid\"; wait" &
	run=$!
	until [ -s "$WORK/command.pid" ]; do sleep 0.1; done
	kill -9 "$run"
	wait "$run" 2>/dev/null
	left="$(cat "$WORK/child.pid") $(cat "$WORK/command.pid")"
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		alive=
		for pid in $left; do kill -0 "$pid" 2>/dev/null && alive=yes; done
		[ -n "$alive" ] || exit 0
		sleep 0.2
	done
	echo "alive after the lease: $left" >&2
	kill -9 $left
	exit 1'

locks() {
	local round
	for round in 1 2 3 4 5 6 7 8 9 10; do
		sscli serve -- bash -c "$killed_round" || { echo "lock run, round $round: FAIL"; return 1; }
	done
	echo 'lock run: 10 rounds, no process outlives its lease'
}

locks
[ "${1-}" != -locks ] || exit 0
go test -race -count 20 ./cmd/sscli/internal/process ./cmd/sscli/internal/verb ./internal/files ./internal/neterr
scripts/check.sh

cat <<'END'

To try by hand:
  * sscli lock run build -- sleep 600, and let the Mac sleep for a minute: when it wakes, sscli must
    end the command, exit code 8, if the lease has expired
  * kill -9 of the guard, the process between sscli and the command: sscli must say so and end
  * sscli shell in Terminal.app and in iTerm: Tab, Ctrl-C, Ctrl-D, wide characters, resize
  * sscli completion zsh, in zsh as macOS has it
  * sscli context set with a password file in ~/Library: modes 0600, and the path with spaces
  * an archive of a release from a browser: what Gatekeeper says
END
