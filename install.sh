#!/bin/sh
# Installs a release of iosonde for this processor and C library, and checks its sha256.
#
#   IOSONDE_URL   address of SHA256SUMS and the archives: https://... or file:///...
#   IOSONDE_LIBC  gnu or static; by default gnu with glibc 2.28 or newer, else static
#   PREFIX        folder to install into, by default ~/.local
set -eu
export LC_ALL=C
# `cargo xtask dist` writes the address of the release into the copy beside the archives.
release_url=
build_help="build one: cargo xtask dist && IOSONDE_URL=file://\$PWD/target/dist ./install.sh"

# Ends with an error and, if there is one, its remedy: WORDS [HELP]
fail() { printf '%s\n' "error: $1" ${2:+"help: $2"} >&2 && exit 1; }

# Fails with the cause in the messages of a program that writes: WORDS MESSAGES FOLDER VARIABLE
fail_to_write() {
    case $2 in *"space left"* | *"Wrote only"* | *quota*)
        fail "$1: the disk is full" "free space in $3, or set $4 to another folder" ;;
    esac
    cause=$(printf '%s\n' "$2" | sed '1!d; s/.*: //')
    fail "$1: $cause" "set $4 to a folder that you may write to"
}

has() { command -v "$1" >/dev/null 2>&1; }

# Prints gnu if the C library is glibc 2.28 or newer, else static, which runs with any C library.
libc_variant() {
    getconf GNU_LIBC_VERSION 2>/dev/null | awk '
        $1 == "glibc" { split($2, part, "."); new = part[1] > 2 || part[1] == 2 && part[2] >= 28 }
        END { print new ? "gnu" : "static" }' || echo static
}

download() {
    path=${1#file://} help="check the address, the network and the free space in $temporary"
    if [ "$path" != "$1" ]; then
        [ -e "$path" ] || fail "$1 does not exist" "$build_help"
        said=$(cp "$path" "$2" 2>&1) || fail_to_write "cannot copy $1" "$said" "$temporary" TMPDIR
    elif has curl; then
        said=$(curl -fsSL -o "$2" "$1" 2>&1) || fail "cannot download $1: $said" "$help"
    else
        has wget || fail "neither curl nor wget is installed" "install curl"
        said=$(wget -q -O "$2" "$1" 2>&1) || fail "cannot download $1${said:+: $said}" "$help"
    fi
}

# Selects the archive of this machine in SHA256SUMS, or names those that exist.
select_archive() {
    archive=$(grep -o "iosonde-[^ /]*-$1-linux-$2\.tar\.xz\$" "$work/SHA256SUMS") && return
    others=$(sed -n 's/.*-\([^-]*-linux-[a-z]*\)\.tar\.xz$/\1/p' "$work/SHA256SUMS" | tr '\n' ' ')
    help="build it in a checkout: cargo install --path crates/iosonde --locked"
    case $others in *"$1"*) help="set IOSONDE_LIBC to gnu or static" ;; esac
    fail "$url has no archive for $1-linux-$2, it has: ${others% }" "$help"
}

# Installs the files below bin and share of an unpacked archive: FOLDER PREFIX
install_files() {
    (cd "$1" && find bin share -type f) >"$work/names"
    while IFS= read -r name; do
        new=$2/$name.new
        case $name in bin/*) mode=755 ;; *) mode=644 ;; esac
        # A new file replaces the old one, which may be running.
        said=$({ mkdir -p "${new%/*}" && cp "$1/$name" "$new" && chmod "$mode" "$new" &&
            mv -f "$new" "$2/$name" || { rm -f "$new" && false; }; } 2>&1) ||
            fail_to_write "cannot write to $2" "$said" "$2" PREFIX
    done <"$work/names"
}

main() {
    [ "$(uname -s)" = Linux ] || fail "iosonde runs on Linux, this is $(uname -s)"
    processor=$(uname -m)
    case $processor in amd64) processor=x86_64 ;; arm64) processor=aarch64 ;; esac
    url=${IOSONDE_URL:-$release_url}
    [ -n "$url" ] || fail "no release address is known" "$build_help"
    prefix=${PREFIX:-${HOME:+$HOME/.local}}
    [ -n "$prefix" ] || fail "HOME is not set" "set PREFIX to a folder"
    has sha256sum || fail "sha256sum is not installed" "install the package coreutils"
    has xz || fail "xz is not installed" "install the package xz-utils (Debian, Ubuntu) or xz"
    temporary=${TMPDIR:-/tmp}
    work=$(mktemp -d 2>/dev/null) || fail "cannot create a folder in $temporary" "set TMPDIR"
    trap 'rm -rf "$work"' EXIT
    download "$url/SHA256SUMS" "$work/SHA256SUMS"
    select_archive "$processor" "${IOSONDE_LIBC:-$(libc_variant)}"
    download "$url/$archive" "$work/$archive"
    (cd "$work" && grep "[ *]$archive\$" SHA256SUMS | sha256sum -c - >/dev/null 2>&1) ||
        fail "the sha256 of $archive is not that of SHA256SUMS" "download it again"
    said=$({ xz -dc "$work/$archive" | tar -xf - -C "$work"; } 2>&1) ||
        fail_to_write "cannot unpack $archive" "$said" "$temporary" TMPDIR
    unpacked=$work/${archive%.tar.xz}
    said=$("$unpacked/bin/iosonde" --version 2>&1) || case $said in
    *"ermission denied"*) fail "$temporary is mounted noexec" "set TMPDIR to another folder" ;;
    *) fail "the program of $archive does not run: $(printf '%s\n' "$said" | sed q)" \
        "set IOSONDE_LIBC=static" ;;
    esac
    install_files "$unpacked" "$prefix"
    echo "installed ${archive%.tar.xz} as $prefix/bin/iosonde"
    case :$PATH: in *:"$prefix/bin":*) ;; *) echo "add $prefix/bin to PATH" ;; esac
}
main
