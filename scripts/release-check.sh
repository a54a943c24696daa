#!/usr/bin/env bash
# Builds all files of a release twice and tests them, without releasing anything:
# GoReleaser accepts its configuration, both builds are identical, the packages can be
# installed, used and removed, and the image runs.
#
#	scripts/release-check.sh                 with the tools it finds
#	scripts/release-check.sh --if-changed    only if its inputs changed since it last passed
#
# SSCLI_CHECK=full installs GoReleaser if it is missing, and makes it an error to leave a
# check out. The built files are in dist/. After a pass the checksums of the inputs are in
# scripts/release-check.sum: commit it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Later versions require a newer Go.
goreleaser_version=v2.16.0

# The inputs, and their checksums when this last passed.
inputs=(.goreleaser.yaml Dockerfile scripts/release-files.sh scripts/release-check.sh scripts/sbom/*.go)
sums=scripts/release-check.sum

case "${1-}" in
'') ;;
--if-changed)
	if sha256sum --status --check "$sums" && [ "$(wc -l <"$sums")" = ${#inputs[@]} ]; then
		echo "nothing to do: ${inputs[*]} have not changed"
		exit
	fi
	;;
*)
	echo "release-check.sh: $1: want --if-changed or nothing" >&2
	exit 2
	;;
esac

# left_out WHAT WHY
left_out() {
	echo "left out: $1: $2"
	if [ "${SSCLI_CHECK-}" = full ]; then
		echo 'release-check.sh: with SSCLI_CHECK=full, leaving a check out is an error' >&2
		exit 1
	fi
}

die() {
	echo "release-check.sh: $*" >&2
	exit 1
}

PATH=$PATH:$(go env GOPATH)/bin:/usr/sbin:/sbin
# First, because the builds take minutes.
for program in dpkg rpm buildah; do
	command -v $program >/dev/null || [ "${SSCLI_CHECK-}" != full ] || left_out "$program" 'not installed'
done
[ "$(id -u)" = 0 ] || [ "${SSCLI_CHECK-}" != full ] || left_out 'installing' 'not root'
if ! goreleaser --version 2>/dev/null | grep -qF "${goreleaser_version#v}"; then
	[ "${SSCLI_CHECK-}" = full ] ||
		die "no GoReleaser $goreleaser_version: go install github.com/goreleaser/goreleaser/v2@$goreleaser_version"
	go install "github.com/goreleaser/goreleaser/v2@$goreleaser_version"
	PATH=$(go env GOPATH)/bin:$PATH
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# git refuses to read a checkout owned by another user.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'

# To sign takes the identity of a workflow.
skip=sign
docker buildx version >/dev/null 2>&1 || skip+=,docker
build() { goreleaser release --snapshot --clean "--skip=$skip" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }; }

goreleaser check
# Build in copies: the tree may change meanwhile.
rm -rf dist build
cp -a . "$tmp/one"
# Without a remote, GoReleaser uses neither the commit nor its time.
git -C "$tmp/one" remote get-url origin >/dev/null 2>&1 ||
	git -C "$tmp/one" remote add origin https://github.com/sscli/sscli.git
cp -a "$tmp/one" "$tmp/two"
echo 'build'
(cd "$tmp/one" && build)
echo 'build again: other directory, umask, time zone, locale and host name'
(
	cd "$tmp/two"
	umask 077
	chmod -R go-rwx .
	export TZ=Pacific/Auckland LC_ALL=C HOSTNAME=elsewhere
	build
)
diff -u "$tmp/one/dist/checksums.txt" "$tmp/two/dist/checksums.txt" || die 'the two builds differ'
mv "$tmp/one/dist" "$tmp/one/build" .
rm -rf "$tmp/one" "$tmp/two"

# one PATTERN prints the one file in dist that matches.
one() {
	local found
	mapfile -t found < <(compgen -G "dist/$1")
	[ ${#found[@]} = 1 ] || die "$1: ${#found[@]} files, want one"
	echo "${found[0]}"
}

for what in linux_{amd64,arm64,armv7}.{tar.gz,deb,rpm,apk} darwin_{amd64,arm64}.tar.gz windows_{amd64,arm64}.zip \
	linux_{amd64,arm64,armv7}.cdx.json {darwin,windows}_{amd64,arm64}.cdx.json; do
	one "*_$what" >/dev/null
done
for what in homebrew/Casks/sscli.rb scoop/sscli.json; do
	one "$what" >/dev/null
done

arch=$(go env GOHOSTARCH)
[ "$arch" = arm ] && arch=armv7

# use PROGRAM... runs an sscli, which must be this version and work.
use() {
	local said
	said=$("$@" version)
	[[ $said == *"$(sed -n 's/.*"version":"\([^"]*\)".*/\1/p' dist/metadata.json)"* ]] || die "$*: says $said"
	said=$("$@" --embedded -q batch --keep-going - <<<$'set a 1\nget a') || die "$*: $said"
}

# files ROOT prints the files of sscli in a tree.
files() { (cd "$1" && find . -path ./var -prune -o ! -type d -path '*sscli*' -print | sort); }

# leads DIR checks that DIR has every file that README.md and docs link to, except source.
leads() {
	local page target
	for page in README.md docs/*.md examples/README.md; do
		[ -s "$1/$page" ] || die "no $page in $1"
		while read -r target; do
			case $target in
			*://* | *.go | *.txtar | '' | */completions) continue ;;
			esac
			target=$(dirname "$page")/$target
			[ -e "$1/$target" ] || [ -L "$1/$target" ] || die "$page links to $target, which is not in $1"
		done < <(grep -o '](\([^)#]*\)' "$page" | cut -c3- | sort -u)
	done
}

echo 'archive'
mkdir "$tmp/archive"
tar xzf "$(one "*_linux_$arch.tar.gz")" -C "$tmp/archive"
use "$tmp/archive/sscli"
leads "$tmp/archive"
for page in build/man/*; do
	[ -f "$tmp/archive/man/${page##*/}" ] || die "${page##*/} is not in the archive"
	[[ $page != *.1 ]] || grep -qF "man/${page##*/}\"" dist/homebrew/Casks/sscli.rb || die "${page##*/} is not in the cask"
done

# in_place ROOT checks that ROOT has all files of a package, and that they work.
in_place() {
	local root=$1 page
	use "$root/usr/bin/sscli"
	(
		PATH=$root/usr/bin:$PATH
		# shellcheck disable=SC1091 # of the package
		source "$root/usr/share/bash-completion/completions/sscli"
		complete -p sscli >/dev/null
		bash -n "$root/usr/share/sscli/sscli.bash"
	) || die 'the completion of bash'
	[ -s "$root/usr/share/fish/vendor_completions.d/sscli.fish" ] || die 'no completion for fish'
	[ -s "$root/usr/share/doc/sscli/copyright" ] || die 'no license'
	leads "$root/usr/share/doc/sscli"
	for page in build/man/*.1; do
		gzip -t "$root/usr/share/man/man1/${page##*/}.gz"
	done
	for page in build/man/*.7; do
		gzip -t "$root/usr/share/man/man7/${page##*/}.gz"
	done
	if command -v man >/dev/null; then
		man -M "$root/usr/share/man" -w sscli sscli-set sscli-exit-codes >/dev/null || die 'man does not find its pages'
	fi
}

if command -v dpkg >/dev/null && [ "$(id -u)" = 0 ]; then
	echo 'deb: install, use, remove'
	root=$tmp/root
	mkdir -p "$root/var/lib/dpkg"/{info,updates}
	touch "$root/var/lib/dpkg/status"
	dpkg --root="$root" --force-depends -i "$(one "*_linux_$arch.deb")" >"$tmp/log" 2>&1 || { cat "$tmp/log"; die 'dpkg -i'; }
	in_place "$root"
	[ -s "$root/usr/share/zsh/vendor-completions/_sscli" ] || die 'no completion for zsh'
	[[ $(gzip -dc "$root/usr/share/doc/sscli/changelog.Debian.gz") == 'sscli ('*') stable; urgency='* ]] || die 'the changelog of Debian'
	dpkg --root="$root" -r sscli >"$tmp/log" 2>&1 || { cat "$tmp/log"; die 'dpkg -r'; }
	[ -z "$(files "$root")" ] || die "dpkg -r leaves $(files "$root")"
	if command -v lintian >/dev/null; then
		lintian --allow-root --fail-on error,warning "$(one "*_linux_$arch.deb")" || die 'lintian'
	else
		left_out 'lintian' 'not installed'
	fi
else
	left_out 'deb' 'no dpkg, or not root'
fi

echo 'apk'
mkdir "$tmp/apk"
tar xzf "$(one "*_linux_$arch.apk")" -C "$tmp/apk" 2>"$tmp/log"
in_place "$tmp/apk"

if command -v rpm >/dev/null && [ "$(id -u)" = 0 ]; then
	echo 'rpm: install, use, remove'
	mkdir "$tmp/rpm"
	r=(rpm --root "$tmp/rpm" --dbpath /var/lib/rpm)
	"${r[@]}" --initdb
	"${r[@]}" -i --nodeps --nosignature "$(one "*_linux_$arch.rpm")" >"$tmp/log" 2>&1 || { cat "$tmp/log"; die 'rpm -i'; }
	in_place "$tmp/rpm"
	[ -s "$tmp/rpm/usr/share/zsh/site-functions/_sscli" ] || die 'no completion for zsh'
	[ "$("${r[@]}" -qL sscli | wc -l)" = 2 ] || die 'rpm: -qL does not list both licenses'
	"${r[@]}" -e sscli >"$tmp/log" 2>&1 || { cat "$tmp/log"; die 'rpm -e'; }
	[ -z "$(files "$tmp/rpm")" ] || die "rpm -e leaves $(files "$tmp/rpm")"
else
	left_out 'rpm' 'no rpm, or not root'
fi

if command -v buildah >/dev/null && [ "$(id -u)" = 0 ]; then
	echo 'image: build, run'
	platform=linux/$(go env GOHOSTARCH)
	mkdir -p "$tmp/context/$platform" "$tmp/context/build"
	cp "$tmp/archive/sscli" "$tmp/context/$platform/"
	cp Dockerfile LICENSE "$tmp/context/"
	cp -a build/{THIRD-PARTY-LICENSES,image} "$tmp/context/build/"
	export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
	b=(buildah --root "$tmp/storage" --runroot "$tmp/storage-run")
	# The format of OCI has no health check.
	"${b[@]}" bud --quiet --format docker --build-arg "TARGETPLATFORM=$platform" -t sscli "$tmp/context" >/dev/null
	container=$("${b[@]}" from --pull-never localhost/sscli)
	use "${b[@]}" run "$container" sscli
	said=$("${b[@]}" run "$container" statestore-cli --help 2>&1) || die "the image's statestore-cli: $said"
	[[ $said == *Microsoft* ]] || die "the image's statestore-cli says $said"
	user=$("${b[@]}" inspect --format '{{.OCIv1.Config.User}}' "$container")
	[ "$user" = 65532:65532 ] || die "the image's user is $user"
	# The image's health check, in the container whose server runs, and beside none.
	mapfile -t health < <("${b[@]}" inspect --format '{{range .Docker.Config.Healthcheck.Test}}{{println .}}{{end}}' "$container" | sed '/^$/d')
	[ "${health[0]-}" = CMD ] || die "the image's health check is ${health[*]-missing}"
	! "${b[@]}" run "$container" "${health[@]:1}" || die 'the health check succeeds without a server'
	said=$("${b[@]}" run "$container" sscli serve --listen 127.0.0.1:1883 --no-login -- "${health[@]:1}" 2>&1) || die "the health check beside a server: $said"
	"${b[@]}" rm --all >/dev/null
else
	left_out 'image' 'no buildah, or not root'
fi

echo 'sizes'
stat -c '%9s  %n' dist/*.{tar.gz,zip,deb,rpm,apk}

sha256sum "${inputs[@]}" >"$sums"
