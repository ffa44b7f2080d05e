#!/usr/bin/env bash
# Prints the address of the release that the GitHub Action installs.
#
#   URL           this address, if it is not empty
#   VERSION       else this version of the repository, e.g. 0.1.0, v0.1.0 or latest
#   ACTION_REF    else this tag, if it names a version: that of `uses: OWNER/iosonde@v0.1.0`
#   REPOSITORY    address of the repository, without a slash at the end
#
# A branch or a commit has no release: the version in Cargo.toml beside the action is taken.
set -euo pipefail

is_version() { [[ $1 =~ ^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; }

if [[ -n ${URL:-} ]]; then
    printf '%s\n' "$URL"
    exit
fi
version=${VERSION:-}
if [[ -z $version ]] && is_version "${ACTION_REF:-}"; then version=$ACTION_REF; fi
if [[ -z $version ]]; then
    manifest=$(dirname "$0")/../../Cargo.toml
    version=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$manifest")
fi
if [[ $version == latest ]]; then
    printf '%s\n' "${REPOSITORY:?names the repository}/releases/latest/download"
elif is_version "$version"; then
    printf '%s\n' "${REPOSITORY:?names the repository}/releases/download/v${version#v}"
else
    echo "::error::version is $version: set it to a version such as 0.1.0, or to latest" >&2
    exit 2
fi
