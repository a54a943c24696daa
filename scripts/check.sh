#!/usr/bin/env bash
# Checks a change.
#
#	scripts/check.sh                    before each commit: formatting, go vet, all tests but the slow
#	                                    kinds, the examples of README.md and docs. Requires only Go
#	SSCLI_CHECK=full scripts/check.sh   CI: everything, also with the race detector and for other
#	                                    systems. Installs missing tools; a skip is an error
#	scripts/check.sh STEP...            only these steps
#
# SSCLI_FUZZTIME=1m fuzzes each target for one minute instead of one second.
#
# Each step says when it begins and, from the times of the last run that passed, how long is left. It
# prints its output only if it fails. The end lists what was slowest, the skips and, for each failure,
# the command that repeats only that and the last lines that it printed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
# Later versions require a module that the module proxy does not have.
revive=github.com/mgechev/revive@v1.10.0
gotestsum=gotest.tools/gotestsum@v1.13.0
govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.9.0
full='' again=scripts/check.sh
tags=() # the build tag full: tests that require something slow to compile
[ "${SSCLI_CHECK-}" = full ] && full=yes again="SSCLI_CHECK=full $again" tags=(-tags=full)
only=("$@")

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
failures=() skips=() lacks=()
history=${XDG_CACHE_HOME-${HOME-$tmp}/.cache}/sscli/check${full:+-full}
: >"$tmp/took" # lines of steps: seconds, tab, name
: >"$tmp/slow" # the same, with each test in place of the step of all tests

# begin NAME announces a step. It fails if the step is not to run.
begin() {
	local name left=''
	if [ ${#only[@]} -gt 0 ]; then
		for name in "${only[@]}" ''; do
			[ "$name" != "$1" ] || break
		done
		[ -n "$name" ] || return
	elif [ -r "$history" ]; then
		left=$(awk -F '\t' 'NR == FNR { took[$2] = 1; next } !($2 in took) { left += $1 }
			END { if (left) printf " (about %d:%02d left)", left / 60, left % 60 }' "$tmp/took" "$history")
	fi
	printf '...            %s%s\n' "$1" "$left"
}

# step NAME CMD... runs CMD and prints its output only if it fails.
step() {
	local name=$1 start=$SECONDS
	begin "$name" || return 0
	shift
	if "$@" >"$tmp/said" 2>&1; then
		good "$name" "$start"
	else
		sed 's/^/      /' "$tmp/said"
		bad "$name" "$start"
		failures+=("$(tail -n 3 "$tmp/said" | sed '2,$s/^/  /')")
	fi
	slow $((SECONDS - start)) "$name"
}

# ahead FILE CMD... begins what a later step waits for with "outcome FILE": CMD mostly waits, and has the machine beside
# the steps until then. With only some steps, it begins with the step that waits.
ahead() {
	local file=$tmp/$1
	shift
	printf '%q ' "$@" >"$file.command"
	[ ${#only[@]} = 0 ] || return 0
	"$@" >"$file" 2>&1 &
	echo $! >"$file.pid"
}

# outcome FILE prints the output of what ahead began, and returns its exit code.
outcome() {
	local file=$tmp/$1 code=0
	if [ ! -e "$file.pid" ]; then
		eval "$(cat "$file.command")"
		return
	fi
	wait "$(cat "$file.pid")" || code=$?
	cat "$file"
	return $code
}

# slow SECONDS NAME
slow() { printf '%s\t%s\n' "$1" "$2" >>"$tmp/slow"; }

# ended WORD NAME START
ended() {
	printf '%-4s  %6ds  %s\n' "$1" $((SECONDS - $3)) "$2"
	printf '%d\t%s\n' $((SECONDS - $3)) "$2" >>"$tmp/took"
}

good() {
	ended ok "$@"
	passed=$((passed + 1))
}

# bad NAME START [COMMAND]: COMMAND repeats only that.
bad() {
	ended FAIL "$1" "$2"
	failed=$((failed + 1))
	local command="$again '$1'"
	failures+=("$1: ${3-$command}")
}

# skip NAME WHY
skip() {
	[ ${#only[@]} = 0 ] || return 0
	printf 'skip           %s: %s\n' "$1" "$2"
	skipped=$((skipped + 1))
	skips+=("$1: $2")
}

# lack NAME HOW: this machine does not have what the step needs. That is no skip; HOW brings it.
lack() {
	printf 'not done       %s\n' "$1"
	lacks+=("$1: $2")
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
	have curl || packages+=(curl)
	have wget || packages+=(wget)
	have openssl || packages+=(openssl)
	have shellcheck || packages+=(shellcheck)
	have strace || packages+=(strace)
	have zsh || packages+=(zsh)
	have fish || packages+=(fish)
	[ -e /usr/share/bash-completion/bash_completion ] || packages+=(bash-completion)
	have promtool || packages+=(prometheus)
	have man || packages+=(man-db)
	have mandoc || packages+=(mandoc)
	have rpm || packages+=(rpm)
	have lintian || packages+=(lintian)
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

# tests runs all tests, with these flags of go test. Each package prints a line when it ends. go vet runs beside the tests,
# which mostly wait, and shares what both compile. As they wait, twice as many packages as cores run at a time. Without the
# tables of a debugger, 80 programs link a fifth faster.
tests() {
	local start=$SECONDS name='go test' code action package test seconds
	set -- -p "$((2 * $(getconf _NPROCESSORS_ONLN)))" "$@"
	race && [ -n "$full" ] && name='go test -race'
	begin "$name" || return 0
	if ! have gotestsum; then
		skip 'list of skipped tests' "no gotestsum: go install $gotestsum"
		go test -ldflags=-w "$@" ./... 2>&1 | tee "$tmp/said" | grep -v 'no test files'
		code=${PIPESTATUS[0]}
		sed -nE 's/^ok *\t([^\t]*)\t([0-9.]+)s.*/\2\t\1/p' "$tmp/said" >>"$tmp/slow"
		if [ "$code" = 0 ]; then
			good "$name" "$start"
		else
			# Of the tests that failed, the first of a package names all of it.
			bad "$name" "$start" "go test $* $(sed -nE 's/^FAIL\t([^ \t]+).*/\1/p' "$tmp/said" | tr '\n' ' ')-run '$(sed -nE 's/^--- FAIL: ([^ ]+).*/^\1$/p' "$tmp/said" | paste -sd '|' -)'"
		fi
		return
	fi
	: >"$tmp/events"
	gotestsum --format pkgname --format-icons text --format-hide-empty-pkg \
		--jsonfile-timing-events "$tmp/events" -- -ldflags=-w "$@" ./...
	code=$?
	while read -r action package test seconds; do
		case $action in
		pass) passed=$((passed + 1)) ;;
		skip) skipped=$((skipped + 1)) skips+=("$package $test") ;;
		fail)
			failed=$((failed + 1))
			failures+=("$test: go test $* $package -run '^${test//\//\$/^}\$'")
			;;
		esac
		case $test in */*) ;; *) slow "$seconds" "$test $package" ;; esac
	done < <(sed -nE 's/.*"Action":"(pass|fail|skip)","Package":"([^"]*)","Test":"(.*)","Elapsed":([0-9.]+).*/\1 \2 \3 \4/p' "$tmp/events")
	if [ $code = 0 ]; then
		good "$name" "$start"
	elif [ ${#failures[@]} = 0 ]; then # a package that does not build
		bad "$name" "$start"
	else
		ended FAIL "$name" "$start"
	fi
}

# fuzz_target DIRECTORY NAME PROGRAM runs a target of a test binary, on one core.
fuzz_target() {
	local said
	said=$(mktemp "$tmp/fuzz.XXXX")
	(
		cd "$1" || exit
		"$3" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "${SSCLI_FUZZTIME-1s}" -test.parallel 1 \
			-test.fuzzminimizetime 10x -test.fuzzcachedir "$(go env GOCACHE)/fuzz/check.sh/$1"
	) >"$said" 2>&1 && return
	# Before Go 1.27 the fuzzer sometimes reports its own time limit as a failure
	# (go.dev/issue/75804). Then no failing input is named.
	grep -q '^ *context deadline exceeded$' "$said" && ! grep -q 'Failing input' "$said" && return
	printf '%s %s %s\n' "$said" "$1" "$2" >>"$tmp/fuzz.failed"
}

# fuzz runs each fuzz target for $SSCLI_FUZZTIME, as many at a time as there are cores. It links one test
# binary per package, while the targets of the packages before run; go test -fuzz would link one per target.
fuzz() {
	local start=$SECONDS broken='' directory name program said cores running=0
	begin 'fuzz targets' || return 0
	cores=$(getconf _NPROCESSORS_ONLN)
	: >"$tmp/fuzz.failed"
	for directory in $(files | grep '_test\.go$' | xargs grep -ls '^func Fuzz' | xargs -n 1 dirname | sort -u); do
		program=$tmp/${directory//\//_}.test
		if ! go test -ldflags=-w -c -fuzz . -o "$program" "./$directory" >"$tmp/said" 2>&1; then
			sed 's/^/      /' "$tmp/said"
			bad "fuzz targets of $directory" "$start" "go test -c -fuzz . ./$directory"
			broken=yes
			continue
		fi
		for name in $("$program" -test.list '^Fuzz'); do
			if [ "$running" -ge "$cores" ]; then
				wait -n
				running=$((running - 1))
			fi
			fuzz_target "$directory" "$name" "$program" &
			running=$((running + 1))
		done
	done
	wait
	while read -r said directory name; do
		sed 's/^/      /' "$said"
		bad "$name of $directory" "$start" "go test ./$directory -run '^\$' -fuzz '^$name\$'"
		broken=yes
	done <"$tmp/fuzz.failed"
	slow $((SECONDS - start)) 'fuzz targets'
	[ -n "$broken" ] || good 'fuzz targets' "$start"
}

# vulnerabilities looks for known vulnerabilities in what the program calls. If their
# database is not reachable it says so and goes on, also with SSCLI_CHECK=full.
vulnerabilities() {
	if ! have govulncheck; then
		skip govulncheck "not installed: go install $govulncheck"
		return
	fi
	local start=$SECONDS
	begin govulncheck || return 0
	if govulncheck ./... >"$tmp/said" 2>&1; then
		good govulncheck "$start"
	elif grep -q '^govulncheck: fetching vulnerabilities' "$tmp/said"; then
		lack govulncheck "the database of vulnerabilities is not reachable; where it is: govulncheck ./..."
	else
		sed 's/^/      /' "$tmp/said"
		bad govulncheck "$start"
	fi
}

# cluster runs what requires a real Kubernetes API server. It takes minutes to build that server, so
# without it cluster says so and goes on, also with SSCLI_CHECK=full.
cluster() {
	local name='--via kubectl on a real API server'
	if scripts/cluster.sh --built; then
		step "$name" scripts/cluster-check.sh
	else
		lack "$name" 'scripts/cluster.sh --build builds it, once'
	fi
}

# windows runs the tests for Windows with Wine, if its root is there. SSCLI_WINDOWS=no leaves them out.
windows() {
	local name='tests for Windows, short form'
	if [ "${SSCLI_WINDOWS-}" = no ]; then
		lack "$name" 'SSCLI_WINDOWS=no is set'
	elif scripts/wine.sh --built; then
		step "$name" scripts/windows-check.sh -short
	else
		lack "$name" 'scripts/wine.sh --build brings Wine, once'
	fi
}

# testcontainers checks the Go module testcontainers. Its tests require podman, and more time to compile than all else.
# Not every machine can run containers, so that nobody need run these tests, but containers_skipped says so.
testcontainers() (
	cd testcontainers && go mod tidy -diff && go vet ./... && staticcheck ./... &&
		revive -config ../revive.toml -set_exit_status ./... &&
		{ ! have podman || go test -vet=off -shuffle=on -v ./...; }
)

containers_skipped() {
	if ! have podman; then
		echo 'skip           tests in containers: no podman is installed; not an error'
	elif grep -q 'requires podman and containers that run' "$tmp/said"; then
		echo 'skip           tests in containers: podman runs none here; not an error'
	fi
}

# everything runs what only CI needs.
everything() {
	step 'go mod tidy' go mod tidy -diff
	step 'go mod verify' go mod verify
	[ "$(uname)" != Linux ] || ahead attacks scripts/hostile.sh -short
	step 'go vet for Windows, 32 bits and macOS' go run ./scripts/vet windows/386 darwin/arm64
	# Fewer garbage collections: a sixth less time.
	step staticcheck env GOGC=400 staticcheck "${tags[@]}" ./...
	step revive revive -config revive.toml -set_exit_status ./...
	step testcontainers testcontainers && containers_skipped
	vulnerabilities
	step shellcheck shellcheck -x -P SCRIPTDIR scripts/*.sh scripts/*.bash examples/*.sh .ci/run devcontainer/sscli/*.sh
	step 'completions are current' scripts/completions.sh --check
	# In a build for the race detector, package socket makes other system calls.
	step 'go test of servers, without race detector' go test -vet=all "${tags[@]}" -shuffle=on ./internal/socket ./internal/broker ./internal/redis
	if [ "$(uname)" = Linux ]; then
		step 'attacks, short form' outcome attacks
		ahead soak scripts/hostile.sh -soak 15s
	else
		skip 'attacks and soak' 'require Linux'
	fi
	if [ "$(uname -sm)" = 'Linux x86_64' ]; then
		step 'go test for 32 bits' env GOARCH=386 CGO_ENABLED=0 go test -vet=off -shuffle=on ./client ./format ./internal/{broker,disk,policy,redis,store,wire}
	else
		skip '32 bits' 'require Linux on amd64'
	fi
	[ "$(uname)" != Linux ] || step 'soak, short form' outcome soak
	if race; then
		tests -vet=all "${tags[@]}" -shuffle=on -timeout=40m -race
	else
		skip 'race detector' 'no C compiler, or CGO_ENABLED=0'
		tests -vet=all "${tags[@]}" -shuffle=on
	fi
	fuzz
	cluster
	windows
	step 'trial release, if its inputs changed' scripts/release-check.sh --if-changed
}

[ -n "$full" ] && step 'install missing tools' install_missing
step gofmt formatted
step 'blanks, conflicts, paths' hygiene
[ ${#only[@]} = 0 ] || step 'go vet' go vet "${tags[@]}" ./...
# The tests include the imports between packages, README.md, docs and the tour.
if [ -n "$full" ]; then
	everything
else
	tests -vet=all
fi

if [ ${#only[@]} -gt 0 ] && [ ! -s "$tmp/took" ]; then
	echo 'check.sh: no step has this name' >&2
	exit 2
fi
printf '\nslowest:\n'
sort -rn "$tmp/slow" | head -n 5 | sed 's/^/  /; s/\t/s  /'
if [ ${#failures[@]} -gt 0 ]; then
	printf '\nfailed, and how to repeat only that:\n'
	printf '  %s\n' "${failures[@]}"
fi
if [ ${#lacks[@]} -gt 0 ]; then
	printf '\nnot done, and what brings it:\n'
	printf '  %s\n' "${lacks[@]}"
fi
if [ ${#skips[@]} -gt 0 ]; then
	printf '\nskipped:\n'
	printf '  %s\n' "${skips[@]}"
fi
printf '\n%d passed, %d failed, %d skipped in %ds\n' "$passed" "$failed" "$skipped" "$SECONDS"
[ "$failed" = 0 ] || exit 1
if [ ${#only[@]} = 0 ]; then
	mkdir -p "${history%/*}" && cp "$tmp/took" "$history"
fi
if [ -n "$full" ] && [ "$skipped" -gt 0 ]; then
	echo 'check.sh: with SSCLI_CHECK=full, a skip is an error' >&2
	exit 1
fi
