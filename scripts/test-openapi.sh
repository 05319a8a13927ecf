#!/usr/bin/env bash
# Sends what /openapi.json allows, and what it does not, to `hart serve`: no answer may be a failure of the server's.
# schemathesis is installed by name, once, below target/openapi. Needs python3 with venv; without it this is skipped and
# says so, in CI that is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(schemathesis==4.32.5)
dir=$PWD/target/openapi
mkdir -p "$dir"

skip() {
    echo "skipped: $1" >&2
    [ -z "${CI:-}" ] || { echo "in CI that is a failure" >&2; exit 1; }
    exit 0
}
command -v python3 >/dev/null || skip "the API against its description: python3 is missing"
[ -x "$dir/py/bin/python" ] || python3 -m venv "$dir/py" ||
    skip "the API against its description: python3 has no venv (apt-get install python3-venv)"
if [ "$(cat "$dir/installed" 2>/dev/null)" != "${packages[*]}" ]; then
    "$dir/py/bin/pip" install --quiet "${packages[@]}" ||
        skip "the API against its description: schemathesis could not be installed"
    echo "${packages[*]}" >"$dir/installed"
fi

# As the other tests build them, so that nothing is built twice.
"${CARGO:-cargo}" build --locked --quiet --workspace --bin hart --example conformance_server
home=$(mktemp -d)
# Nothing of this machine's, and no model: runs play the recordings.
hart=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/hart
(cd "$home" && exec env -i PATH="$PATH" HOME="$home" HART_HOME="$home/data" "$hart" serve --port 0) \
    >"$home/out" 2>"$home/err" &
server=$!
stop() { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$home"; }
trap stop EXIT
for _ in $(seq 300); do
    [ -s "$home/out" ] && break
    sleep 0.1
done
url=$(sed -n '1s/^ready: //p' "$home/out")
[ -n "$url" ] || { echo "the server did not start" >&2; cat "$home/err" >&2; exit 1; }

# What hart does not have, it refuses with 501 and a name; what needs a model, of which there is none here, with 503.
cat >"$home/schemathesis.toml" <<'TOML'
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", "501", "503"]
TOML

# Streams of a thread have no end of their own, so they are left out.
"$dir/py/bin/st" --config-file "$home/schemathesis.toml" run "$url/openapi.json" --url "$url" --checks not_a_server_error --phases examples,coverage,fuzzing \
    --max-examples 10 --max-time "${OPENAPI_SECONDS:-120}" --request-timeout 20 --seed 1 --no-color --warnings off \
    --generation-database none --exclude-path-regex '/threads/\{thread\}/stream'
