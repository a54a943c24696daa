#!/usr/bin/env bash
# The steps of the GitHub action (action.yml), which also work in other CI systems:
#
#	action.sh start    install sscli, start sscli serve in the background, and wait until it is ready
#	action.sh log      print the log of each server that was started, and end it
#
# The variables SSCLI_VERSION, SSCLI_PATH, SSCLI_LISTEN, SSCLI_LOAD, SSCLI_POLICY, SSCLI_USERS, SSCLI_TLS,
# SSCLI_SAT_AUDIENCE, SSCLI_REDIS and SSCLI_CONTROL are the inputs of the action. What later steps need is written to $GITHUB_ENV, $GITHUB_OUTPUT and
# $GITHUB_PATH, or without these variables printed as lines NAME=VALUE.
set -euo pipefail

dir=${RUNNER_TEMP:-${TMPDIR:-/tmp}}/sscli
log=$dir/serve.log

# shellcheck source=../devcontainer/sscli/release.sh
. "$(dirname "${BASH_SOURCE[0]}")/../devcontainer/sscli/release.sh"

# put FILE NAME=VALUE
put() {
	if [ -n "$1" ]; then printf '%s\n' "$2" >>"$1"; else printf '%s\n' "$2"; fi
}

install_sscli() {
	mkdir -p "$dir/bin"
	if [ -n "${SSCLI_PATH-}" ]; then
		(cd "$SSCLI_PATH" && go build -o "$dir/bin/" ./cmd/sscli) || fail "cannot build $SSCLI_PATH"
	elif [ -n "${SSCLI_VERSION-}" ]; then
		install_release "$SSCLI_VERSION" "$dir"
	else
		command -v sscli >/dev/null || fail 'expected the input version, or path, or sscli on the PATH'
		return 0
	fi
	PATH=$dir/bin:$PATH
	put "${GITHUB_PATH-}" "$dir/bin"
}

start() {
	local args=(--listen "${SSCLI_LISTEN:-127.0.0.1:1883}") file url pid urls=1 tls=false ping=()
	# Without a login, there is no authorization: everything would be allowed.
	[ -z "${SSCLI_POLICY-}" ] || [ -n "${SSCLI_USERS-}${SSCLI_SAT_AUDIENCE-}" ] ||
		fail 'policy without users: there is no authorization without a login; set the input users, or sat-audience'
	while IFS= read -r file; do
		[ -z "$file" ] || args+=(--load "$file")
	done <<<"${SSCLI_LOAD-}"
	[ -z "${SSCLI_POLICY-}" ] || args+=(--policy "$SSCLI_POLICY")
	[ -z "${SSCLI_USERS-}" ] || args+=(--users "$SSCLI_USERS")
	if [ "${SSCLI_TLS-false}" = true ]; then
		tls=true ping=(--ca-file "$dir/login/ca.crt")
		args+=(--self-signed "$dir/login")
	fi
	[ -z "${SSCLI_SAT_AUDIENCE-}" ] || args+=(--sat-audience "$SSCLI_SAT_AUDIENCE" --sat-out "$dir/token")
	[ -z "${SSCLI_REDIS-}" ] || { args+=(--redis "$SSCLI_REDIS"); urls=$((urls + 1)); }
	[ -z "${SSCLI_CONTROL-}" ] || { args+=(--control "$SSCLI_CONTROL"); urls=$((urls + 1)); }
	: >"$dir/urls" # an earlier server has left its URLs
	[ -e "$dir/pids" ] || : >"$log"
	# What clients need is in the variables that this script exports, not in those of its inputs.
	nohup sscli serve -v -o raw "${args[@]}" >"$dir/urls" 2>>"$log" </dev/null &
	pid=$!
	printf '%s\n' "$pid" >>"$dir/pids"
	for _ in $(seq 600); do
		[ "$(grep -c . "$dir/urls")" -lt "$urls" ] || break # one line for each URL
		kill -0 "$pid" 2>/dev/null || { cat "$log" >&2; fail 'sscli serve ended'; }
		sleep 0.1
	done
	url=$(grep -m 1 '^mqtt' "$dir/urls") || { cat "$log" >&2; fail 'sscli serve is not ready after a minute'; }
	sscli -u "$url" "${ping[@]}" -q ping -n 1 --alive --wait 30s >/dev/null || { cat "$log" >&2; fail 'the store does not answer'; }
	put "${GITHUB_OUTPUT-}" "url=$url"
	put "${GITHUB_OUTPUT-}" "log=$log"
	put "${GITHUB_ENV-}" "SSCLI_URL=$url"
	put "${GITHUB_ENV-}" "AIO_BROKER_HOSTNAME=$(hostname_of "$url")"
	put "${GITHUB_ENV-}" "AIO_BROKER_TCP_PORT=${url##*:}"
	put "${GITHUB_ENV-}" "AIO_MQTT_USE_TLS=$tls"
	if [ "$tls" = true ]; then
		put "${GITHUB_ENV-}" "AIO_TLS_CA_FILE=$dir/login/ca.crt"
		put "${GITHUB_ENV-}" "SSCLI_CA_FILE=$dir/login/ca.crt"
	fi
	if [ -n "${SSCLI_SAT_AUDIENCE-}" ]; then
		put "${GITHUB_ENV-}" "AIO_SAT_FILE=$dir/token"
		put "${GITHUB_ENV-}" "SSCLI_SAT_FILE=$dir/token"
	fi
	put "${GITHUB_ENV-}" AIO_MQTT_CLEAN_START=true
	if url=$(grep -m 1 '^redis' "$dir/urls"); then
		put "${GITHUB_OUTPUT-}" "redis-url=$url"
		put "${GITHUB_ENV-}" "REDIS_URL=$url"
	fi
	if url=$(grep -m 1 '^http' "$dir/urls"); then
		put "${GITHUB_OUTPUT-}" "control-url=$url"
		put "${GITHUB_ENV-}" "SSCLI_CONTROL_URL=$url"
	fi
}

# hostname_of URL
hostname_of() {
	local address=${1#*://}
	address=${address%:*}
	address=${address#[}
	printf '%s' "${address%]}"
}

case ${1-} in
start)
	install_sscli
	start
	;;
log)
	if [ -r "$dir/pids" ]; then
		while read -r pid; do
			kill "$pid" 2>/dev/null || true
			for _ in $(seq 100); do
				kill -0 "$pid" 2>/dev/null || break
				sleep 0.1
			done
		done <"$dir/pids"
		rm "$dir/pids"
	fi
	cat "$log"
	;;
*) fail 'expected start or log' ;;
esac
