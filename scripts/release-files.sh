#!/usr/bin/env bash
# Writes the files of a release that are not in the repository to build/: the manual
# pages, plain and compressed, the licenses of the modules linked into the program, the
# changelog of the packages, what the image has besides the program, and the provenance that is
# signed.
#
#	scripts/release-files.sh VERSION SECONDS COMMIT    SECONDS: the commit's time, since 1970
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# != 3 ]; then
	echo 'release-files.sh: want VERSION, SECONDS and COMMIT' >&2
	exit 2
fi
export SOURCE_DATE_EPOCH=$2
rm -rf build
mkdir -p build/man-gz
go run -buildvcs=false -ldflags "-X main.buildVersion=$1" ./cmd/sscli man build/man
for page in build/man/*; do
	gzip -9n <"$page" >"build/man-gz/${page##*/}.gz"
done

modules() {
	local os
	for os in linux darwin windows; do
		GOOS=$os CGO_ENABLED=0 go list -deps -f \
			'{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/sscli
	done | sort -u
}

{
	echo 'sscli is linked with these modules and with the Go standard library.'
	echo
	printf '%s\n' '--- Go'
	cat "$(go env GOROOT)/LICENSE"
	modules | while read -r path version dir; do
		found=
		for file in "$dir"/LICEN[CS]E* "$dir"/COPYING* "$dir"/NOTICE* "$dir"/e[dp]l-v*; do
			[ -f "$file" ] || continue
			found=yes
			printf '\n--- %s %s, %s\n' "$path" "$version" "${file##*/}"
			cat "$file"
		done
		if [ -z "$found" ]; then
			echo "release-files.sh: $path $version has no license in $dir" >&2
			exit 1
		fi
	done
} >build/THIRD-PARTY-LICENSES

# In the form of github.com/goreleaser/chglog, for /usr/share/doc/sscli/changelog.Debian.gz.
cat >build/changelog.yml <<EOF
- semver: "$1"
  date: $(date -u -d "@$2" +%Y-%m-%dT%H:%M:%SZ)
  packager: The sscli authors <sscli@users.noreply.github.com>
  deb: {distributions: [stable], urgency: medium}
  changes:
    - note: "Version $1. CHANGELOG.md lists the changes that users notice."
EOF

# What lintian is not to find in the package of Debian.
cat >build/lintian-overrides <<'EOF'
# Like every program in Go that uses no C.
sscli: statically-linked-binary [usr/bin/sscli]
# nfpm writes it: newer versions of dpkg know it.
sscli: unknown-field Architecture-Variant
# README.md and docs link to it under this name.
sscli: wrong-name-for-upstream-changelog [usr/share/doc/sscli/CHANGELOG.md]
EOF

# The image's second name for the program, and a directory for --data. A builder keeps a link
# in a directory, but copies what a link by itself leads to.
mkdir -m 755 build/image build/image/bin build/image/data
ln -s sscli build/image/bin/statestore-cli
touch -hd "@$2" build/image/bin/statestore-cli build/image/bin build/image/data

# The predicate of an SLSA v1 provenance. GitHub sets the variables in a workflow.
source=https://github.com/sscli/sscli
cat >build/provenance.json <<EOF
{
  "buildDefinition": {
    "buildType": "$source/blob/main/.goreleaser.yaml",
    "externalParameters": {"source": "git+$source@${GITHUB_REF-}", "version": "$1"},
    "resolvedDependencies": [{"uri": "git+$source", "digest": {"gitCommit": "$3"}}]
  },
  "runDetails": {
    "builder": {"id": "${GITHUB_WORKFLOW_REF:-local}"},
    "metadata": {"invocationId": "${GITHUB_RUN_ID:-none}"}
  }
}
EOF
