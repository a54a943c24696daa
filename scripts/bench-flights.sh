#!/usr/bin/env bash
# Counts one-shots that go wrong, on Mosquitto as it comes, with nodelay and with TLS
# 1.3, and on the emulator, and measures requests one after the other beside paho's
# client. Ends with 1 if a flight failed or the goal is missed.
#
#	scripts/bench-flights.sh                1,000 flights each, about half a minute
#	scripts/bench-flights.sh -n 10000       see scripts/bench/flights for the flags
#
# It wants Linux, Go and mosquitto, and is no part of check.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PATH:/usr/local/sbin:/usr/sbin

for tool in go mosquitto; do
	if ! command -v "$tool" >/dev/null; then
		echo "bench-flights.sh: no $tool on the PATH" >&2
		exit 2
	fi
done

tmp=$(mktemp -d)
brokers=()
trap '[ ${#brokers[@]} -eq 0 ] || { kill "${brokers[@]}"; wait "${brokers[@]}"; } || true; rm -rf "$tmp"' EXIT

go build -buildvcs=false -o "$tmp/bench" ./scripts/bench/flights
(cd "$tmp" && go run "$(go env GOROOT)/src/crypto/tls/generate_cert.go" -host 127.0.0.1 -ca -ecdsa-curve P256 2>"$tmp/cert.log")

# start NAME LINE runs a Mosquitto with that line of configuration; port is then its
# port, and the next one speaks TLS. (With "user root" it stays who it is if started by
# root.)
start() {
	for port in $(shuf -i 20000-32000 -n 10); do
		cat >"$tmp/$1.conf" <<-END
			user root
			$2
			listener $port 127.0.0.1
			allow_anonymous true
			listener $((port + 1)) 127.0.0.1
			allow_anonymous true
			certfile $tmp/cert.pem
			keyfile $tmp/key.pem
		END
		mosquitto -c "$tmp/$1.conf" 2>"$tmp/$1.log" &
		local broker=$!
		while kill -0 "$broker" 2>"$tmp/gone" && ! grep -q ' running$' "$tmp/$1.log"; do
			sleep 0.05
		done
		if grep -q ' running$' "$tmp/$1.log"; then
			brokers+=("$broker")
			return
		fi
		wait "$broker" || true # Mosquitto cannot choose a port, and one that is taken ends it
	done
	sed 's/^/mosquitto: /' "$tmp/$1.log" >&2
	exit 2
}

start stock ""
stock=$port
start nodelay "set_tcp_nodelay true"
"$tmp/bench" -stock "127.0.0.1:$stock" -stock-tls "127.0.0.1:$((stock + 1))" -nodelay "127.0.0.1:$port" -ca "$tmp/cert.pem" "$@"
