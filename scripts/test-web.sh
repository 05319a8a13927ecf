#!/bin/sh
# The tests of the web page: its pure parts, then all of it in a real browser against a real hart with a scripted model.
# Chromium is installed where that is possible. Without it, or without Node.js, they are skipped with a word about it; on
# CI that is an error.
set -eu
cd "$(dirname "$0")/.."

skip() {
    if [ -n "${CI:-}" ]; then
        echo "the tests of the web page need $1" >&2
        exit 1
    fi
    echo "skipped: the tests of the web page ($1 is not here)"
    exit 0
}

command -v npm >/dev/null || skip "Node.js 20 or newer"
scripts/build-page.sh
[ -f web/dist/frame/diagram.js ] || skip "Node.js 20 or newer"
npm --prefix web run --silent format
npm --prefix web test --silent

find_chromium() {
    for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
        [ -n "$name" ] && CHROMIUM=$(command -v "$name") && return
    done
    return 1
}
if ! find_chromium && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update && apt-get install --yes --no-install-recommends chromium; } >/dev/null || true
fi
find_chromium || skip "Chromium (apt-get install chromium)"
export CHROMIUM

# As the other tests build them, so that nothing is built twice.
${CARGO:-cargo} build --locked --workspace --bin hart --example conformance_server
built="${CARGO_TARGET_DIR:-$PWD/target}/debug"
export HART_BIN="$built/hart" EXAMPLE_BIN="$built/examples/conformance_server"
exec npm --prefix web run --silent e2e
