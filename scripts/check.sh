#!/usr/bin/env bash
# Checks everything: form, analysis, tests, fuzz targets, what README.md and docs show,
# and, if SSCLI_CHECK=full and it changed, what a release is made of.
#
#	scripts/check.sh                    with what is there; wants Go, nothing else
#	SSCLI_CHECK=full scripts/check.sh   installs what is missing; a skip is an error
#
# SSCLI_FUZZTIME=1m fuzzes each target for longer than 1s.
#
# Each step prints a line with its duration, and all it has to say if it fails. At
# the end stand what failed, what was skipped and why, and the sums of steps and
# tests.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

staticcheck_version=v0.8.2
full=
[ "${SSCLI_CHECK-}" = full ] && full=yes

if ! command -v go >/dev/null; then
	echo 'check.sh: no go on the PATH' >&2
	exit 2
fi
# Tools of the Go command and daemons are often not on the PATH. No build here
# needs to know its commit, and git may refuse to tell.
PATH=$PATH:$(go env GOPATH)/bin:/usr/local/sbin:/usr/sbin
GOFLAGS="$(go env GOFLAGS) -buildvcs=false"
export PATH GOFLAGS
export GORACE=atexit_sleep_ms=0

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

passed=0 failed=0 skipped=0
failures=() skips=()

# step NAME CMD... runs CMD and prints what it says only if it fails.
step() {
	local name=$1 start=$SECONDS
	shift
	if "$@" >"$tmp/said" 2>&1; then
		good "$name" "$start"
	else
		sed 's/^/      /' "$tmp/said"
		bad "$name" "$start"
	fi
}

good() {
	printf 'ok    %6ds  %s\n' $((SECONDS - $2)) "$1"
	passed=$((passed + 1))
}

bad() {
	printf 'FAIL  %6ds  %s\n' $((SECONDS - $2)) "$1"
	failed=$((failed + 1))
	failures+=("$1")
}

# skip NAME WHY
skip() {
	printf 'skip           %s: %s\n' "$1" "$2"
	skipped=$((skipped + 1))
	skips+=("$1: $2")
}

have() { command -v "$1" >/dev/null; }

# install gets what is missing; whatever that leaves missing is skipped later,
# which is then an error.
install_missing() {
	local packages=()
	have "$(go env CC)" || have gcc || packages+=(gcc libc6-dev)
	have mosquitto || packages+=(mosquitto)
	have openssl || packages+=(openssl)
	have shellcheck || packages+=(shellcheck)
	have strace || packages+=(strace)
	have zsh || packages+=(zsh)
	have fish || packages+=(fish)
	[ -e /usr/share/bash-completion/bash_completion ] || packages+=(bash-completion)
	have man || packages+=(man-db)
	have mandoc || packages+=(mandoc)
	have rpm || packages+=(rpm)
	have buildah || packages+=(buildah)
	if [ ${#packages[@]} -gt 0 ] && have apt-get && [ "$(id -u)" = 0 ]; then
		export DEBIAN_FRONTEND=noninteractive
		apt-get -q update && apt-get -q install -y --no-install-recommends "${packages[@]}" || return
	fi
	if ! staticcheck -version 2>/dev/null | grep -qF "(${staticcheck_version#v})"; then
		go install "honnef.co/go/tools/cmd/staticcheck@$staticcheck_version" || return
		hash -r
		# Another version may come first on the PATH.
		PATH=$(go env GOPATH)/bin:$PATH
	fi
}

# files prints the names of the project's files.
files() {
	if git -c safe.directory='*' rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git -c safe.directory='*' ls-files -z --cached --others --exclude-standard | tr '\0' '\n'
	else
		find . -name .git -prune -o -type f -print
	fi
}

# found prints the places where a pattern stands in the files whose names fit $1.
# It succeeds if there is one.
found() {
	local names=$1
	shift
	files | grep -E "$names" | tr '\n' '\0' | xargs -0 grep -nHIs "$@" --
}

hygiene() {
	local ok=0 written='(\.(go|md|sh|sscli|yaml|mod)|/run|LICENSE|\.gitignore)$'
	if found "$written" -E '[[:blank:]]+$'; then
		echo '^ blanks at the end of a line'
		ok=1
	fi
	if found "$written" -E $'\r$'; then
		echo '^ CR LF'
		ok=1
	fi
	if found . -E '^(<{7}|>{7})( |$)'; then
		echo '^ a merge that was not finished'
		ok=1
	fi
	if found . -E '/(home|Users)/[[:alnum:]]' || found . -F "$PWD/" || found . -F "${HOME:-$PWD}/"; then
		echo '^ a path of one machine'
		ok=1
	fi
	return $ok
}

formatted() {
	local list
	list=$(gofmt -l .) || return
	[ -z "$list" ] && return
	echo "$list"
	echo 'gofmt -w would change these'
	return 1
}

# A compiler for C is what the race detector needs.
race() {
	[ "$(go env CGO_ENABLED)" = 1 ] && have "$(go env CC)"
}

# tests runs all tests. They have lines and counts of their own.
tests() {
	local start=$SECONDS flags=(-shuffle=on -timeout 5m) name='go test'
	if race; then
		flags+=(-race)
		name='go test -race'
	else
		skip 'race detector' 'no C compiler, or CGO_ENABLED=0'
	fi
	if ! go build -o "$tmp/verdict" ./scripts/verdict; then
		bad "$name" "$start"
		return
	fi
	echo '0 0 0' >"$tmp/counts"
	: >"$tmp/skips"
	go test -json "${flags[@]}" ./... 2>&1 | "$tmp/verdict" "$tmp/counts" "$tmp/skips"
	local status=("${PIPESTATUS[@]}")
	local good_tests bad_tests skipped_tests
	read -r good_tests bad_tests skipped_tests <"$tmp/counts"
	passed=$((passed + good_tests)) failed=$((failed + bad_tests)) skipped=$((skipped + skipped_tests))
	while IFS= read -r line; do
		skips+=("$line")
	done <"$tmp/skips"
	if [ "${status[0]}" = 0 ] && [ "${status[1]}" = 0 ]; then
		good "$name: $good_tests tests" "$start"
	else
		bad "$name: $bad_tests of $((good_tests + bad_tests)) tests" "$start"
	fi
}

# fuzz_target PACKAGE NAME
fuzz_target() {
	go test -run '^$' -fuzz "^$2\$" -fuzztime "${SSCLI_FUZZTIME-1s}" -fuzzminimizetime 10x "$1" >"$tmp/fuzz" 2>&1 && return
	cat "$tmp/fuzz"
	# Before Go 1.27 the fuzzer at times takes the end of its own time for a failure
	# (go.dev/issue/75804). Then there is no input that failed.
	grep -q '^ *context deadline exceeded$' "$tmp/fuzz" && ! grep -q 'Failing input' "$tmp/fuzz"
}

# fuzz runs each fuzz target for a short time.
fuzz() {
	local start=$SECONDS names=() name
	if ! go test -list '^Fuzz' ./... >"$tmp/list" 2>&1; then
		sed 's/^/      /' "$tmp/list"
		bad 'list of the fuzz targets' "$start"
	fi
	while read -r first second _; do
		case $first in
		Fuzz*) names+=("$first") ;;
		ok)
			for name in ${names[@]+"${names[@]}"}; do
				step "$name ${second#"$(go list -m)"/}" fuzz_target "$second" "$name"
			done
			names=()
			;;
		esac
	done <"$tmp/list"
}

[ -n "$full" ] && step 'install what is missing' install_missing

step gofmt formatted
step 'blanks, conflicts, paths' hygiene
step 'go mod tidy' go mod tidy -diff
step 'go mod verify' go mod verify
step 'go vet' go vet ./...
step 'go vet for windows' env GOOS=windows CGO_ENABLED=0 go vet ./...
step 'go vet for darwin' env GOOS=darwin CGO_ENABLED=0 go vet ./...
if have staticcheck; then
	step staticcheck staticcheck ./...
else
	skip staticcheck "not installed: go install honnef.co/go/tools/cmd/staticcheck@$staticcheck_version"
fi
if have shellcheck; then
	step shellcheck shellcheck scripts/*.sh scripts/*.bash examples/*.sh .ci/run
else
	skip shellcheck 'not installed'
fi
step 'completions are current' scripts/completions.sh --check
tests # among them: the arrows between the packages, the pages, the tour
fuzz
if [ -n "$full" ]; then
	step 'release, if its files changed' scripts/release-check.sh --if-changed
else
	skip release 'scripts/release-check.sh builds one and looks at it, in some minutes'
fi

if [ ${#failures[@]} -gt 0 ]; then
	printf '\nfailed:\n'
	printf '  %s\n' "${failures[@]}"
fi
if [ ${#skips[@]} -gt 0 ]; then
	printf '\nskipped:\n'
	printf '  %s\n' "${skips[@]}"
fi
printf '\n%d passed, %d failed, %d skipped in %ds\n' "$passed" "$failed" "$skipped" "$SECONDS"
[ "$failed" = 0 ] || exit 1
if [ -n "$full" ] && [ "$skipped" -gt 0 ]; then
	echo 'with SSCLI_CHECK=full nothing may be skipped' >&2
	exit 1
fi
