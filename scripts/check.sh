#!/usr/bin/env bash
# Runs all checks: formatting, analysis, tests, fuzz targets, the examples of README.md
# and docs and, with SSCLI_CHECK=full, a trial release if its inputs changed.
#
#	scripts/check.sh                    requires only Go; uses the other tools it finds
#	SSCLI_CHECK=full scripts/check.sh   installs missing tools; a skip is an error
#
# SSCLI_FUZZTIME=1m fuzzes each target for one minute instead of one second.
#
# Each step prints one line with its duration, and its output only if it fails. The end
# lists the failures and the skips, and counts steps and tests.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
# Later versions require a module that the module proxy does not have.
revive=github.com/mgechev/revive@v1.10.0
gotestsum=gotest.tools/gotestsum@v1.13.0
govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.9.0
full=
[ "${SSCLI_CHECK-}" = full ] && full=yes

if ! command -v go >/dev/null; then
	echo 'check.sh: no go on the PATH' >&2
	exit 2
fi
# GOPATH/bin and the sbin directories are often not on the PATH. No build here needs
# its commit, and git refuses to name it in a checkout owned by another user.
PATH=$PATH:$(go env GOPATH)/bin:/usr/local/sbin:/usr/sbin
GOFLAGS="$(go env GOFLAGS) -buildvcs=false"
export PATH GOFLAGS
export GORACE=atexit_sleep_ms=0

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

passed=0 failed=0 skipped=0
failures=() skips=()

# step NAME CMD... runs CMD and prints its output only if it fails.
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

# install_missing installs missing tools. A step whose tool is still missing is
# skipped later, which is then an error.
install_missing() {
	local packages=()
	have "$(go env CC)" || have gcc || packages+=(gcc libc6-dev)
	have mosquitto || packages+=(mosquitto)
	have mosquitto_pub || packages+=(mosquitto-clients)
	/usr/bin/python3 -c 'import paho.mqtt' 2>/dev/null || packages+=(python3-paho-mqtt)
	have redis-server || packages+=(redis-server)
	have redis-cli || packages+=(redis-tools)
	/usr/bin/python3 -c 'import redis.client' 2>/dev/null || packages+=(python3-redis)
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
	have rustc || packages+=(rustc)
	compgen -G '/usr/share/cargo/registry/glob-*' >/dev/null || packages+=(librust-glob-dev) # of TestScanLikeRust
	if [ ${#packages[@]} -gt 0 ] && have apt-get && [ "$(id -u)" = 0 ]; then
		export DEBIAN_FRONTEND=noninteractive
		apt-get -q update && apt-get -q install -y --no-install-recommends "${packages[@]}" || return
	fi
	staticcheck -version 2>/dev/null | grep -qF "(${staticcheck#*@v})" || go install "$staticcheck" || return
	go version -m "$(command -v revive)" 2>/dev/null | grep -qF "${revive#*@}" || go install "$revive" || return
	gotestsum --version 2>/dev/null | grep -qF "${gotestsum#*@}" || go install "$gotestsum" || return
	go version -m "$(command -v govulncheck)" 2>/dev/null | grep -qF "${govulncheck#*@}" || go install "$govulncheck" || return
	hash -r
	# Another version may come first on the PATH.
	PATH=$(go env GOPATH)/bin:$PATH
}

# files prints the names of the project's files.
files() {
	if git -c safe.directory='*' rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git -c safe.directory='*' ls-files -z --cached --others --exclude-standard | tr '\0' '\n'
	else
		find . -name .git -prune -o -type f -print
	fi
}

# found NAMES GREP_ARGS... greps the files whose names match NAMES. It succeeds if there
# is a match.
found() {
	local names=$1
	shift
	files | grep -E "$names" | tr '\n' '\0' | xargs -0 grep -nHIs "$@" --
}

hygiene() {
	local ok=0 written='(\.(go|md|sh|sscli|yaml|mod)|/run|LICENSE|\.gitignore)$'
	if found "$written" -E '[[:blank:]]+$'; then
		echo '^ trailing blanks'
		ok=1
	fi
	if found "$written" -E $'\r$'; then
		echo '^ CR LF line endings'
		ok=1
	fi
	if found . -E '^(<{7}|>{7})( |$)'; then
		echo '^ an unfinished merge'
		ok=1
	fi
	if found . -E '/(home|Users)/[[:alnum:]]' || found . -F "$PWD/" || found . -F "${HOME:-$PWD}/"; then
		echo '^ a path of this machine'
		ok=1
	fi
	return $ok
}

formatted() {
	local list
	list=$(gofmt -l .) || return
	[ -z "$list" ] && return
	echo "$list"
	echo 'not formatted: run gofmt -w on them'
	return 1
}

# race reports whether the race detector can run: it needs cgo and a C compiler.
race() {
	[ "$(go env CGO_ENABLED)" = 1 ] && have "$(go env CC)"
}

# tests runs all tests. gotestsum prints the output of the failed and the skipped ones.
tests() {
	local start=$SECONDS flags=(-shuffle=on -timeout 25m) name='go test'
	if race; then
		flags+=(-race)
		name='go test -race'
	else
		skip 'race detector' 'no C compiler, or CGO_ENABLED=0'
	fi
	if ! have gotestsum; then
		skip 'list of skipped tests' "no gotestsum: go install $gotestsum"
		step "$name" go test "${flags[@]}" ./...
		return
	fi
	: >"$tmp/events"
	gotestsum --format pkgname --format-icons text --format-hide-empty-pkg \
		--jsonfile-timing-events "$tmp/events" -- "${flags[@]}" ./...
	local code=$? action package test count=0
	while read -r action package test; do
		count=$((count + 1))
		case $action in
		pass) passed=$((passed + 1)) ;;
		fail) failed=$((failed + 1)) failures+=("$package $test") ;;
		skip) skipped=$((skipped + 1)) skips+=("$package $test") ;;
		esac
	done < <(sed -nE 's/.*"Action":"(pass|fail|skip)","Package":"([^"]*)","Test":"(.*)","Elapsed".*/\1 \2 \3/p' "$tmp/events")
	if [ $code = 0 ]; then
		good "$name: $count tests" "$start"
	else
		bad "$name" "$start"
	fi
}

# fuzz_target DIRECTORY NAME runs a target of the test binary "$tmp/fuzz.test".
fuzz_target() {
	(
		cd "$1" || exit
		"$tmp/fuzz.test" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "${SSCLI_FUZZTIME-1s}" \
			-test.fuzzminimizetime 10x -test.fuzzcachedir "$(go env GOCACHE)/fuzz/check.sh/$1"
	) >"$tmp/fuzz" 2>&1 && return
	cat "$tmp/fuzz"
	# Before Go 1.27 the fuzzer sometimes reports its own time limit as a failure
	# (go.dev/issue/75804). Then no failing input is named.
	grep -q '^ *context deadline exceeded$' "$tmp/fuzz" && ! grep -q 'Failing input' "$tmp/fuzz"
}

# fuzz runs each fuzz target for $SSCLI_FUZZTIME. It links one test binary per package;
# go test -fuzz would link one per target.
fuzz() {
	local start=$SECONDS directory name
	for directory in $(files | grep '_test\.go$' | xargs grep -ls '^func Fuzz' | xargs -n 1 dirname | sort -u); do
		if ! go test -c -fuzz . -o "$tmp/fuzz.test" "./$directory" >"$tmp/said" 2>&1; then
			sed 's/^/      /' "$tmp/said"
			bad "fuzz targets of $directory" "$start"
			continue
		fi
		for name in $("$tmp/fuzz.test" -test.list '^Fuzz'); do
			step "$name $directory" fuzz_target "$directory" "$name"
		done
	done
}

# vulnerabilities looks for known vulnerabilities in what the program calls. If their
# database is not reachable it says so and goes on, also with SSCLI_CHECK=full.
vulnerabilities() {
	if ! have govulncheck; then
		skip govulncheck "not installed: go install $govulncheck"
		return
	fi
	local start=$SECONDS
	if govulncheck ./... >"$tmp/said" 2>&1; then
		good govulncheck "$start"
	elif grep -q '^govulncheck: fetching vulnerabilities' "$tmp/said"; then
		echo 'not done       govulncheck: the database of vulnerabilities is not reachable'
	else
		sed 's/^/      /' "$tmp/said"
		bad govulncheck "$start"
	fi
}

# cluster runs what requires a real Kubernetes API server. It takes minutes to build that server, so
# without it cluster says so and goes on, also with SSCLI_CHECK=full.
cluster() {
	local name='--via kubectl on a real API server'
	if [ -z "$full" ]; then
		skip "$name" 'takes a minute and a half: scripts/cluster-check.sh'
	elif scripts/cluster.sh --built; then
		step "$name" scripts/cluster-check.sh
	else
		echo "not done       $name: scripts/cluster.sh --build builds it, once"
	fi
}

# windows runs the tests for Windows with Wine, if its root is there. SSCLI_WINDOWS=no leaves them out.
windows() {
	local name='tests for Windows, short form'
	if [ -z "$full" ]; then
		skip "$name" 'takes three minutes: scripts/windows-check.sh -short'
	elif [ "${SSCLI_WINDOWS-}" != no ] && scripts/windows-check.sh -built; then
		step "$name" scripts/windows-check.sh -short
	else
		echo "not done       $name: first run scripts/windows-check.sh -root"
	fi
}

[ -n "$full" ] && step 'install missing tools' install_missing

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
	skip staticcheck "not installed: go install $staticcheck"
fi
if have revive; then
	step revive revive -config revive.toml -set_exit_status ./...
else
	skip revive "not installed: go install $revive"
fi
vulnerabilities
if have shellcheck; then
	step shellcheck shellcheck scripts/*.sh scripts/*.bash examples/*.sh .ci/run
else
	skip shellcheck 'not installed'
fi
step 'completions are current' scripts/completions.sh --check
# In a build for the race detector, package socket makes other system calls.
step 'go test of servers, without race detector' go test -shuffle=on ./internal/socket ./internal/broker ./internal/redis
if [ "$(uname)" = Linux ]; then
	step 'attacks, short form' scripts/hostile.sh -short
	step 'soak, short form' scripts/hostile.sh -soak 15s
else
	skip 'attacks, short form' 'requires Linux'
fi
tests # including the imports between packages, README.md, docs and the tour
fuzz
cluster
windows
if [ -n "$full" ]; then
	step 'trial release, if its inputs changed' scripts/release-check.sh --if-changed
else
	skip 'trial release' 'takes minutes: scripts/release-check.sh'
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
	echo 'check.sh: with SSCLI_CHECK=full, a skip is an error' >&2
	exit 1
fi
