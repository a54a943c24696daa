#!/usr/bin/env bash
# Runs all benchmarks one after the other. Writes a Markdown table of their goals to
# standard output, and their own output to standard error. A missed goal does not stop
# it; it then exits with 1 at the end.
#
#	scripts/bench.sh >table.md        about ten minutes, on an otherwise idle machine
#
# Requires Linux, Go, mosquitto and its clients, redis-server and redis-cli, etcd and
# etcdctl.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit

out=$(mktemp)
trap 'rm -f "$out"' EXIT
missed=0

echo '| command | goal | |'
echo '| --- | --- | --- |'
for script in bench-request.sh 'bench-flights.sh -n 10000' bench-watch.sh bench-batch.sh bench-redis.sh 'bench-takeover.sh 10 3'; do
	read -ra words <<<"$script"
	echo "== scripts/$script" >&2
	"./${words[0]}" "${words[@]:1}" >"$out"
	code=$?
	cat "$out" >&2
	if [ $code -gt 1 ]; then
		exit $code
	fi
	[ $code = 0 ] || missed=1
	# A goal is a line with that word, or a row of bench-request.sh.
	grep -E 'goal|[<>]= ' "$out" | grep -v '^ *sscli ms' | sed -E 's/^ +//; s/ {2,}/ /g' | while IFS= read -r line; do
		met='met'
		[[ $line =~ [Mm]issed|MISSED ]] && met='**missed**'
		# shellcheck disable=SC2016
		printf '| `scripts/%s` | %s | %s |\n' "$script" "$(sed -E 's/[:,]? *(MISSED|missed|met)$//' <<<"$line")" "$met"
	done
done
exit $missed
