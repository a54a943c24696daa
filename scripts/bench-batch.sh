#!/usr/bin/env bash
# Measures `sscli batch` into `sscli serve` beside `redis-cli < file` into a Redis
# server, both on loopback, both started and ended by this: sets a second, with many
# under way and one at a time, and the peak memory of a long and a very long batch.
# Then beside paho's client, both through a Mosquitto to a store attached to it.
# Ends with 1 if a goal is missed.
#
#	scripts/bench-batch.sh                  five rounds, some minutes
#	scripts/bench-batch.sh -rounds 9        see scripts/bench/batch for the flags
#
# It wants Linux, Go, redis-server, redis-cli and mosquitto, and is no part of
# check.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PATH:/usr/local/sbin:/usr/sbin

for tool in go redis-server redis-cli mosquitto; do
	if ! command -v "$tool" >/dev/null; then
		echo "bench-batch.sh: no $tool on the PATH" >&2
		exit 2
	fi
done

tmp=$(mktemp -d)
servers=()
trap 'for pid in "${servers[@]}"; do kill "$pid" && wait "$pid" || true; done; rm -rf "$tmp"' EXIT

export CGO_ENABLED=0
go build -buildvcs=false -o "$tmp/sscli" ./cmd/sscli
go build -buildvcs=false -o "$tmp/bench" ./scripts/bench/batch

"$tmp/sscli" serve --listen 127.0.0.1:0 -o raw >"$tmp/serve" 2>&1 &
servers+=($!)
while ! grep -q 'mqtt://' "$tmp/serve"; do
	kill -0 "${servers[0]}"
	sleep 0.05
done
store=$(grep -o 'mqtt://[0-9.:]*' "$tmp/serve" | head -n 1)

# Redis cannot choose a port, and one that is taken ends it.
redis=
for port in $(shuf -i 20000-32000 -n 10); do
	redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$tmp" >"$tmp/log" &
	pid=$!
	while kill -0 "$pid" 2>"$tmp/gone" && ! grep -q 'eady to accept connections' "$tmp/log"; do
		sleep 0.05
	done
	if grep -q 'eady to accept connections' "$tmp/log"; then
		redis=$port
		servers+=("$pid")
		break
	fi
	wait "$pid" || true
done
if [ -z "$redis" ]; then
	sed 's/^/redis-server: /' "$tmp/log" >&2
	exit 2
fi

# Nor can Mosquitto. (With "user root" it stays who it is if started by root.)
broker=
for port in $(shuf -i 20000-32000 -n 10); do
	cat >"$tmp/mosquitto.conf" <<-END
		user root
		listener $port 127.0.0.1
		allow_anonymous true
		set_tcp_nodelay true
		max_queued_messages 0
		max_inflight_messages 0
	END
	mosquitto -c "$tmp/mosquitto.conf" 2>"$tmp/log" &
	pid=$!
	while kill -0 "$pid" 2>"$tmp/gone" && ! grep -q ' running$' "$tmp/log"; do
		sleep 0.05
	done
	if grep -q ' running$' "$tmp/log"; then
		broker=127.0.0.1:$port
		servers+=("$pid")
		break
	fi
	wait "$pid" || true
done
if [ -z "$broker" ]; then
	sed 's/^/mosquitto: /' "$tmp/log" >&2
	exit 2
fi
"$tmp/sscli" serve --attach -u "mqtt://$broker" -o raw >"$tmp/attached" 2>&1 &
servers+=($!)
while ! [ -s "$tmp/attached" ]; do
	kill -0 "${servers[-1]}"
	sleep 0.05
done

"$tmp/bench" -broker "$broker" -sscli "$tmp/sscli" -store "$store" -redis-port "$redis" "$@"
