#!/usr/bin/env bash
# Measures `sscli watch` beside mosquitto_sub, both on one Mosquitto that this
# starts and ends: notifications per second, the latency of a paced stream, and the
# memory of a watch of many keys. Ends with 1 if a goal is missed.
#
#	scripts/bench-watch.sh                  five rounds, about a minute and a half
#	scripts/bench-watch.sh -rounds 9        see scripts/bench/watch for the flags
#
# It wants Linux, Go, mosquitto and mosquitto_sub, and is no part of check.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PATH:/usr/local/sbin:/usr/sbin

for tool in go mosquitto mosquitto_sub; do
	if ! command -v "$tool" >/dev/null; then
		echo "bench-watch.sh: no $tool on the PATH" >&2
		exit 2
	fi
done

tmp=$(mktemp -d)
broker=
trap '[ -z "$broker" ] || { kill "$broker"; wait "$broker"; } || true; rm -rf "$tmp"' EXIT

go build -buildvcs=false -o "$tmp/sscli" ./cmd/sscli
go build -buildvcs=false -o "$tmp/bench" ./scripts/bench/watch

# Mosquitto cannot choose a port, and one that is taken ends it.
for port in $(shuf -i 20000-32000 -n 10); do
	# No limit may drop a message or hold one back. (With "user root" it stays who
	# it is if started by root.)
	cat >"$tmp/mosquitto.conf" <<-END
		user root
		listener $port 127.0.0.1
		allow_anonymous true
		set_tcp_nodelay true
		max_queued_messages 0
		max_inflight_messages 0
	END
	mosquitto -c "$tmp/mosquitto.conf" 2>"$tmp/log" &
	broker=$!
	while kill -0 "$broker" 2>"$tmp/gone" && ! grep -q ' running$' "$tmp/log"; do
		sleep 0.05
	done
	grep -q ' running$' "$tmp/log" && break
	wait "$broker" || true
	broker=
done
if [ -z "$broker" ]; then
	sed 's/^/mosquitto: /' "$tmp/log" >&2
	exit 2
fi
"$tmp/bench" -broker "127.0.0.1:$port" -sscli "$tmp/sscli" "$@"
