#!/bin/sh
# Installs a release of iosonde for this processor and C library, and checks its sha256.
#
#   IOSONDE_URL   address of SHA256SUMS and the archives: https://... or file:///...
#   IOSONDE_LIBC  gnu or static; by default gnu with glibc 2.28 or newer, else static
#   PREFIX        folder to install into, by default ~/.local
set -eu

# `cargo xtask dist` writes the address of the release into the copy beside the archives.
release_url=

fail() {
    echo "error: $1" >&2
    [ -z "${2-}" ] || echo "help: $2" >&2
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }
build_help="build one: cargo xtask dist && IOSONDE_URL=file://\$PWD/target/dist ./install.sh"

# Prints gnu if the C library is glibc 2.28 or newer, else static, which runs with any C library.
libc_variant() {
    version=$(getconf GNU_LIBC_VERSION 2>/dev/null) || version=
    case $version in
    "glibc "[0-9]*.[0-9]*) ;;
    *) echo static && return ;;
    esac
    version=${version#glibc }
    major=${version%%.*}
    minor=${version#*.}
    minor=${minor%%[!0-9]*}
    if [ "$major" -gt 2 ] || { [ "$major" -eq 2 ] && [ "$minor" -ge 28 ]; }; then
        echo gnu
    else
        echo static
    fi
}

download() {
    help="check the address and the network, or set IOSONDE_URL to another copy of the release"
    case $1 in
    file://*) cp "${1#file://}" "$2" 2>/dev/null || fail "$1 does not exist" "$build_help" ;;
    *)
        if has curl; then
            curl --fail --silent --location --output "$2" "$1" || fail "cannot download $1" "$help"
        elif has wget; then
            wget -q -O "$2" "$1" || fail "cannot download $1" "$help"
        else
            fail "neither curl nor wget is installed" "install curl"
        fi
        ;;
    esac
}

# Installs the files below bin and share of an unpacked archive: FOLDER PREFIX
install_files() {
    (cd "$1" && find bin share -type f) >"$work/names"
    while IFS= read -r name; do
        mode=644
        [ "${name%%/*}" != bin ] || mode=755
        # A new file replaces the old one, which may be running.
        { mkdir -p "$2/${name%/*}" && cp "$1/$name" "$2/$name.new" &&
            chmod "$mode" "$2/$name.new" && mv -f "$2/$name.new" "$2/$name"; } 2>/dev/null ||
            fail "cannot write to $2" "set PREFIX to a folder that you may write to"
    done <"$work/names"
}

main() {
    [ "$(uname -s)" = Linux ] || fail "iosonde runs on Linux, this is $(uname -s)"
    case $(uname -m) in
    x86_64 | amd64) processor=x86_64 ;;
    aarch64 | arm64) processor=aarch64 ;;
    *) fail "there is no release for the processor $(uname -m)" "build iosonde from source" ;;
    esac
    url=${IOSONDE_URL:-$release_url}
    [ -n "$url" ] || fail "no release address is known" "$build_help"
    [ -n "${PREFIX:-${HOME:-}}" ] || fail "HOME is not set" "set PREFIX to a folder"
    prefix=${PREFIX:-$HOME/.local}
    libc=${IOSONDE_LIBC:-$(libc_variant)}
    has sha256sum || fail "sha256sum is not installed" "install coreutils"
    has xz || fail "xz is not installed" "install xz-utils (Debian) or xz"
    work=$(mktemp -d) || fail "cannot create a temporary folder" "set TMPDIR"
    trap 'rm -rf "$work"' EXIT
    download "$url/SHA256SUMS" "$work/SHA256SUMS"
    archive=$(grep -o "iosonde-[^ /]*-$processor-linux-$libc\.tar\.xz\$" "$work/SHA256SUMS") ||
        fail "$url has no archive for $processor-linux-$libc" "set IOSONDE_LIBC to gnu or static"
    download "$url/$archive" "$work/$archive"
    (cd "$work" && grep "[ *]$archive\$" SHA256SUMS | sha256sum -c - >/dev/null 2>&1) ||
        fail "the sha256 of $archive is not that of SHA256SUMS" "download it again"
    xz -dc "$work/$archive" | tar -xf - -C "$work" || fail "cannot unpack $archive"
    unpacked=$work/${archive%.tar.xz}
    "$unpacked/bin/iosonde" --version >/dev/null || fail "the program of $archive does not run" \
        "set IOSONDE_LIBC=static; if TMPDIR is mounted noexec, set it to another folder"
    install_files "$unpacked" "$prefix"
    echo "installed ${archive%.tar.xz} as $prefix/bin/iosonde"
    case :$PATH: in *:"$prefix/bin":*) ;; *) echo "add $prefix/bin to PATH" ;; esac
}

main
