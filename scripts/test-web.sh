#!/bin/sh
# The tests of the web page: its pure parts, then all of it in a real browser against a real hart with a scripted model.
# Without Node.js or Chromium they are skipped with a word about it; on CI that is an error.
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
npm --prefix web run --silent format
npm --prefix web test --silent

for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
    [ -n "$name" ] && CHROMIUM=$(command -v "$name") && break
done
[ -n "${CHROMIUM:-}" ] || skip "Chromium (apt-get install chromium)"
export CHROMIUM

${CARGO:-cargo} build --locked -p hart-cli
${CARGO:-cargo} build --locked -p hart-gateway --example conformance_server
built="${CARGO_TARGET_DIR:-$PWD/target}/debug"
export HART_BIN="$built/hart" EXAMPLE_BIN="$built/examples/conformance_server"
exec npm --prefix web run --silent e2e
