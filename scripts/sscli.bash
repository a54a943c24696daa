# shellcheck shell=bash
# sscli.bash: functions for scripts that use the state store. Source it:
#
#	source /usr/share/sscli/sscli.bash
#
#	ss_get VAR KEY [DEFAULT]
#	        read the exact value of a key into a variable
#	ss_wait_for KEY [CONDITION [DURATION]]
#	        wait until the key exists, is gone, or has a value
#	ss_with_lock NAME [FLAG...] -- CMD [ARG...]
#	        run a command, or a function of the script, while holding a lock
#	ss_meaning CODE
#	        print the meaning of an exit code
#
# Each returns 0 for yes, SS_NO for no (without a message), and otherwise the exit code
# of sscli, which has printed the error on standard error. None of them exits the shell
# or changes its options. They work with bash 3.2 and later, also under set -eu. sscli
# finds the broker as usual (sscli help environment); SSCLI may name another sscli than
# the one on the PATH.

# The exit codes, see `sscli help exit-codes`. They are not readonly, so that the file
# can be sourced twice.
# shellcheck disable=SC2034 # for those who source this
{
	SS_NO=1
	SS_USAGE=2
	SS_UNREACHABLE=3
	SS_LOGIN=4
	SS_REFUSED=5
	SS_FENCED=6
	SS_CLOCK=7
	SS_LOCK_LOST=8
	SS_NONSENSE=9
	SS_GAP=10
	SS_UNKNOWN=11
	SS_UNPRINTED=12
	SS_DATA=13
	SS_PARTIAL=14
	SS_TIMEOUT=124
	SS_BUSY=75 # ss_with_lock only: another holds the lock
}

# ss_get VAR KEY [DEFAULT] sets the variable VAR to the value of KEY, including trailing
# newlines, which $(sscli get KEY) would lose. If the key is missing, VAR becomes DEFAULT;
# without DEFAULT it becomes empty, and the function returns SS_NO. An error leaves VAR
# unchanged. A variable cannot hold a NUL: for a value with one, it returns SS_USAGE. Use
# sscli get -f FILE for such values, and for large ones.
ss_get() {
	if [ $# -lt 2 ] || [ $# -gt 3 ]; then
		echo 'ss_get: want VAR KEY [DEFAULT]' >&2
		return "$SS_USAGE"
	fi
	# Names that VAR cannot have, and the C locale, so that read keeps all bytes.
	local __ss_value='' __ss_code='' __ss_nul='' LC_ALL=C
	# The input is the value, a NUL, and the exit code. A second NUL was in the value.
	{
		IFS= read -r -d '' __ss_value || :
		if IFS= read -r -d '' __ss_code; then
			__ss_nul=yes
			cat >/dev/null
		fi
	} < <(
		code=0
		"${SSCLI:-sscli}" get -o raw -- "$2" || code=$?
		printf '\0%d' "$code"
	)
	if [ -n "$__ss_nul" ]; then
		printf 'ss_get: the value of %q has a NUL, which no variable can hold\n' "$2" >&2
		return "$SS_USAGE"
	fi
	case $__ss_code in
	0) printf -v "$1" %s "$__ss_value" ;;
	"$SS_NO")
		printf -v "$1" %s "${3-}"
		[ $# = 3 ] || return "$SS_NO"
		;;
	*) return "$__ss_code" ;;
	esac
}

# ss_wait_for KEY [CONDITION [DURATION]] waits until CONDITION holds: set (the default),
# delete, or value=V. DURATION is a whole number with s, m or h, as in 30s; when it is
# over, the function returns SS_NO. While the broker is unreachable it tries again
# every second, for DURATION at most.
ss_wait_for() {
	local condition=${2-set} unit=1 seconds='' code said
	if [ $# -lt 1 ] || [ $# -gt 3 ]; then
		echo 'ss_wait_for: want KEY [CONDITION [DURATION]]' >&2
		return "$SS_USAGE"
	fi
	if [ $# = 3 ]; then
		case $3 in
		*s) seconds=${3%s} ;;
		*m) seconds=${3%m} unit=60 ;;
		*h) seconds=${3%h} unit=3600 ;;
		esac
		case $seconds in
		'' | *[!0-9]*)
			printf 'ss_wait_for: %q: want a whole number with s, m or h, as in 30s\n' "$3" >&2
			return "$SS_USAGE"
			;;
		esac
		seconds=$((10#$seconds * unit))
	fi
	local end=$((SECONDS + ${seconds:-0}))
	while :; do
		code=0
		said=$("${SSCLI:-sscli}" watch "$1" --until "$condition" ${seconds:+--for "${seconds}s"} 2>&1 >/dev/null) || code=$?
		if [ "$code" != "$SS_UNREACHABLE" ] || { [ -n "$seconds" ] && [ $((end - SECONDS)) -le 1 ]; }; then
			[ -z "$said" ] || printf '%s\n' "$said" >&2
			return "$code"
		fi
		sleep 1
		if [ -n "$seconds" ]; then
			seconds=$((end - SECONDS))
			[ "$seconds" -ge 1 ] || seconds=1
		fi
	done
}

# ss_with_lock NAME [FLAG...] -- CMD [ARG...] runs CMD while holding the lock NAME, as
# sscli lock run does, and takes its flags (--wait 5m, --try, --ttl 1m, …). It returns the
# exit code of CMD, SS_BUSY if another holds the lock (sscli names the holder), or
# SS_LOCK_LOST if the lock was lost.
#
# CMD may be a function of the script. It runs in a separate bash with all functions of
# the script, its options errexit, nounset and pipefail, and its exported variables. In
# CMD, sscli set KEY VALUE --fence lock uses the current token of the lock.
ss_with_lock() {
	# Prefixed, because a local variable would hide one of the script from CMD.
	local __ss_name=${1-} __ss_flags=() __ss_options='' __ss_word
	[ $# = 0 ] || shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		__ss_flags+=("$1")
		shift
	done
	if [ -z "$__ss_name" ] || [ "$__ss_name" = -- ] || [ $# -lt 2 ]; then
		echo 'ss_with_lock: want NAME [FLAG...] -- CMD [ARG...]' >&2
		return "$SS_USAGE"
	fi
	shift
	if ! declare -F "$1" >/dev/null; then
		"${SSCLI:-sscli}" lock run "$__ss_name" -E "$SS_BUSY" ${__ss_flags[@]+"${__ss_flags[@]}"} -- "$@"
		return
	fi
	(
		for __ss_word in errexit nounset pipefail; do
			case :$SHELLOPTS: in
			*:"$__ss_word":*) __ss_options+="set -o $__ss_word; " ;;
			esac
		done
		while read -r _ _ __ss_word; do
			export -f "${__ss_word?}"
		done < <(declare -F)
		export "${!SS_@}"
		exec "${SSCLI:-sscli}" lock run "$__ss_name" -E "$SS_BUSY" ${__ss_flags[@]+"${__ss_flags[@]}"} -- \
			"${BASH:-bash}" -c "$__ss_options"'"$@"' "$0" "$@"
	)
}

# ss_meaning CODE prints the meaning of an exit code of these functions or of sscli.
ss_meaning() {
	case ${1-} in
	"$SS_BUSY") echo 'another holds the lock' ;;
	'' | *[!0-9]*)
		echo 'ss_meaning: want CODE' >&2
		return "$SS_USAGE"
		;;
	*)
		"${SSCLI:-sscli}" help exit-codes | awk -v code="$1" '
			/^  / && $1 == code { sub(/^ *[^ ]+ +/, ""); print; found = 1 }
			END { if (!found && code > 128) { print "ended by signal " code - 128; found = 1 }; exit !found }'
		;;
	esac
}
