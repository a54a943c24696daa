# shellcheck shell=dash
# Installs a release of sscli. The GitHub action (scripts/action.sh) and the dev container feature (install.sh beside
# this file) source it; a feature's script has only the files of its folder.

# fail MESSAGE
fail() {
	printf 'sscli: %s\n' "$*" >&2
	exit 1
}

# sha256 FILE
sha256() {
	if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# download URL FILE
download() {
	if command -v curl >/dev/null; then
		curl -fsSL --retry 3 -o "$2" "$1"
	elif command -v wget >/dev/null; then
		wget -q -O "$2" "$1"
	else
		fail 'expected curl or wget, to download a release'
	fi || fail "cannot download $1"
}

# install_release VERSION DIR downloads a release, such as 1.2.3 or latest, compares its checksum, and unpacks it to
# DIR/bin. SSCLI_RELEASES is where releases are, if not at GitHub.
install_release() {
	local version=${1#v} dir=$2 system arch form=tar.gz from name wanted
	local base=${SSCLI_RELEASES:-https://github.com/sscli/sscli/releases}
	case ${RUNNER_OS:-$(uname -s)} in
	Linux) system=linux ;;
	macOS | Darwin) system=darwin ;;
	Windows | MINGW* | MSYS*) system=windows form=zip ;;
	*) fail "no release for ${RUNNER_OS:-$(uname -s)}" ;;
	esac
	case ${RUNNER_ARCH:-$(uname -m)} in
	X64 | x86_64) arch=amd64 ;;
	ARM64 | aarch64 | arm64) arch=arm64 ;;
	ARM | armv7l) arch=armv7 ;;
	*) fail "no release for ${RUNNER_ARCH:-$(uname -m)}" ;;
	esac
	case $version in
	latest) from=$base/latest/download ;;
	*) from=$base/download/v$version ;;
	esac
	mkdir -p "$dir/bin"
	download "$from/checksums.txt" "$dir/checksums.txt"
	if [ "$version" = latest ]; then # which version it is, its files say
		version=$(sed -n "s/^.*  sscli_\([^_]*\)_${system}_$arch\.$form\$/\1/p" "$dir/checksums.txt")
		[ -n "$version" ] || fail "the latest release has nothing for $system on $arch"
	fi
	name=sscli_${version}_${system}_$arch.$form
	wanted=$(awk -v name="$name" '$2 == name { print $1 }' "$dir/checksums.txt")
	[ -n "$wanted" ] || fail "release $version has no $name"
	download "$base/download/v$version/$name" "$dir/$name"
	[ "$(sha256 "$dir/$name")" = "$wanted" ] || fail "$name does not have the checksum of the release"
	case $form in
	zip) unzip -qo "$dir/$name" -d "$dir/bin" ;;
	*) tar -xzf "$dir/$name" -C "$dir/bin" ;;
	esac || fail "cannot unpack $name"
}
