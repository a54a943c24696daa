#!/usr/bin/env bash
# Runs the benchmarks that have goals, one after the other. Writes a Markdown table of the
# goals to standard output, and the other output to standard error. A missed goal does not
# stop it; it then exits with 1 at the end.
#
#	scripts/bench.sh >table.md        about nine minutes, on an otherwise idle machine
#
# Requires Linux, Go, mosquitto and its clients, redis-server, redis-cli and
# redis-benchmark.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit

out=$(mktemp)
trap 'rm -f "$out"' EXIT
missed=0

echo '| | what | sscli | peer | ratio | goal | | command |'
echo '| --- | --- | --- | --- | --- | --- | --- | --- |'
for script in 'bench-flights.sh -n 5000' bench-request.sh bench-batch.sh bench-watch.sh bench-emulator.sh bench-redis.sh bench-transfer.sh 'bench-data.sh 100000'; do
	read -ra words <<<"$script"
	echo "== scripts/$script" >&2
	"./${words[0]}" "${words[@]:1}" >"$out"
	code=$?
	grep -v '^| ' "$out" >&2
	sed -n "s,^| .*,& \`scripts/$script\` |,p" "$out"
	if [ $code -gt 1 ]; then
		exit $code
	fi
	[ $code = 0 ] || missed=1
done
exit $missed
