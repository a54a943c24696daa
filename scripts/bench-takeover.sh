#!/usr/bin/env bash
# Measures how long a lock's next holder waits, for `sscli lock run` on `sscli serve`
# and for `etcdctl lock` on one etcd, both started and ended here:
#
#	release: from the end of the holder's command to the start of the next one's
#	SIGKILL: from the death of the holder's process to the same; what dominates is
#	         the rest of the lease, which both renew each third of the TTL or so
#
#	scripts/bench-takeover.sh            10 releases and 5 deaths each, about two minutes
#	scripts/bench-takeover.sh 20 10
#
# It wants Go, etcd and etcdctl, and is no part of check.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
releases=${1-10} deaths=${2-5} ttl=5

for tool in go etcd etcdctl; do
	if ! command -v "$tool" >/dev/null; then
		echo "bench-takeover.sh: no $tool on the PATH" >&2
		exit 2
	fi
done

tmp=$(mktemp -d)
started=()
finish() {
	for pid in ${started[@]+"${started[@]}"}; do
		kill "$pid" 2>"$tmp/gone" || true
		wait "$pid" 2>"$tmp/gone" || true
	done
	rm -rf "$tmp"
}
trap finish EXIT

CGO_ENABLED=0 go build -buildvcs=false -o "$tmp/sscli" ./cmd/sscli
"$tmp/sscli" serve --listen 127.0.0.1:0 -o raw >"$tmp/url" 2>"$tmp/serve" &
started+=($!)
while [ ! -s "$tmp/url" ]; do sleep 0.05; done
SSCLI_URL=$(cut -f 1 "$tmp/url")
export SSCLI_URL

peer=$((20000 + RANDOM % 10000))
etcd --data-dir "$tmp/etcd" --log-level error \
	--listen-client-urls "http://127.0.0.1:$((peer + 1))" --advertise-client-urls "http://127.0.0.1:$((peer + 1))" \
	--listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
	--initial-cluster "default=http://127.0.0.1:$peer" >"$tmp/etcd.log" 2>&1 &
started+=($!)
export ETCDCTL_API=3 ETCDCTL_ENDPOINTS=http://127.0.0.1:$((peer + 1))
until etcdctl endpoint health >"$tmp/health" 2>&1; do sleep 0.1; done

# lock WHO CMD... runs a command under the lock.
lock() {
	local who=$1
	shift
	case $who in
	sscli) exec "$tmp/sscli" lock run takeover --ttl "${ttl}s" -- "$@" ;;
	etcdctl) exec etcdctl lock --ttl "$ttl" takeover -- "$@" ;;
	esac
}

# takeover WHO HOW prints the milliseconds of one.
takeover() {
	local who=$1 how=$2 dir holder next from
	dir=$(mktemp -d "$tmp/round.XXXXXX")
	mkfifo "$dir/up" "$dir/go" "$dir/next"
	# shellcheck disable=SC2016 # for the bash inside
	(lock "$who" bash -c 'echo up >"$0/up"; read -r _ <"$0/go"; echo "$EPOCHREALTIME" >"$0/end"' "$dir") 2>"$dir/said" &
	holder=$!
	if ! read -r -t 60 _ <>"$dir/up"; then
		echo "bench-takeover.sh: $who gets no lock:" >&2
		cat "$dir/said" >&2
		exit 1
	fi
	# shellcheck disable=SC2016
	(lock "$who" bash -c 'echo "$EPOCHREALTIME" >"$0/next"' "$dir") 2>>"$dir/said" &
	next=$!
	sleep "1.$((RANDOM % 1000))" # it waits, and the holder renews
	if [ "$how" = SIGKILL ]; then
		from=$EPOCHREALTIME
		kill -KILL "$holder"
	else
		echo >"$dir/go"
	fi
	read -r to <"$dir/next"
	[ "$how" = SIGKILL ] || from=$(cat "$dir/end")
	wait "$holder" "$next" 2>"$dir/gone" || true
	# Whoever is no longer guarded reads from this for ever.
	[ "$how" != SIGKILL ] || timeout 1 bash -c "echo >'$dir/go'" 2>"$dir/gone" || true
	awk -v from="$from" -v to="$to" 'BEGIN { printf "%.1f\n", (to - from) * 1000 }'
}

# row WHO HOW ROUNDS
row() {
	local i
	for ((i = 0; i < $3; i++)); do takeover "$1" "$2"; done | sort -n >"$tmp/figures"
	awk -v who="$1" -v how="$2" '{ v[NR] = $1 } END { printf "%-8s %-8s %8.1f %8.1f %8.1f  (%d rounds)\n", how, who, v[1], v[int((NR + 1) / 2)], v[NR], NR }' "$tmp/figures"
}

printf 'TTL %ds; milliseconds from the end of one holder to the start of the next\n' "$ttl"
printf '%-8s %-8s %8s %8s %8s\n' end of min median max
for who in sscli etcdctl; do row "$who" release "$releases"; done
for who in sscli etcdctl; do row "$who" SIGKILL "$deaths"; done
