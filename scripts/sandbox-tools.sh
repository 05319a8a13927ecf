#!/bin/sh
# What the tests of the sandbox call beside the shell. Installed where that is possible; tests that lack one are skipped
# with a word about it, here and by the test itself. On CI that is an error.
set -eu

# A program and the package it comes in.
tools="perl:perl-base unshare:util-linux setpriv:util-linux mount:mount curl:curl python3:python3-minimal git:git"

missing() {
    for tool in $tools; do
        # The tests name them by this path: it is what a sandbox shows.
        [ -x "/usr/bin/${tool%%:*}" ] || printf '%s ' "${tool#*:}"
    done
}

packages=$(missing)
[ -n "$packages" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    # shellcheck disable=SC2086 # several packages
    { apt-get update && apt-get install --yes --no-install-recommends $packages; } >/dev/null || true
    packages=$(missing)
    [ -n "$packages" ] || exit 0
fi
if [ -n "${CI:-}" ]; then
    echo "the tests of the sandbox need: $packages" >&2
    exit 1
fi
echo "skipped: some tests of the sandbox (not here: ${packages% }; apt-get install them)"
