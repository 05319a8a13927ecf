#!/usr/bin/env bash
# Drives the example `conformance_server` with LangGraph's official Python and JavaScript clients and its React hooks, as
# contracts/conformance/ORIGIN.md says. The clients are installed by name, once, below target/sdks. Needs python3 with
# venv, and node 20 or newer with npm; what is missing is skipped and named, in CI it is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

python_packages=(langgraph-sdk==0.4.14 httpx==0.28.1 websockets==17.4)
# The SDK's tag `latest` is an older upload than 1.12.
node_packages=(@langchain/langgraph-sdk@1.12.0 @langchain/core@1.2.13 @langchain/react@1.1.0
    react@19.3.1 react-dom@19.3.1 happy-dom@21.0.4)

dir=$PWD/target/sdks
mkdir -p "$dir/js"
started=()
stop() { for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done; }
trap stop EXIT

skip() {
    echo "skipped: $1" >&2
    [ -z "${CI:-}" ] || { echo "in CI that is a failure" >&2; exit 1; }
    skipped+=("$1")
}
skipped=()

# Installs what is listed unless the same list was installed before.
install() {
    local stamp=$1 list=$2
    shift 2
    [ "$(cat "$stamp" 2>/dev/null)" = "$list" ] && return
    "$@" && echo "$list" >"$stamp"
}
has_python() {
    command -v python3 >/dev/null || { skip "the Python SDK: python3 is missing"; return 1; }
    [ -x "$dir/py/bin/python" ] || python3 -m venv "$dir/py" ||
        { skip "the Python SDK: python3 has no venv (apt-get install python3-venv)"; return 1; }
    install "$dir/py.installed" "${python_packages[*]}" "$dir/py/bin/pip" install --quiet "${python_packages[@]}" ||
        { skip "the Python SDK could not be installed"; return 1; }
}
has_node() {
    command -v node >/dev/null && command -v npm >/dev/null || { skip "the JavaScript SDK: node or npm is missing"; return 1; }
    [ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 20')" = true ] ||
        { skip "the JavaScript SDK: node is older than 20"; return 1; }
    [ -f "$dir/js/package.json" ] || echo '{"private": true}' >"$dir/js/package.json"
    install "$dir/js.installed" "${node_packages[*]}" \
        npm install --silent --no-audit --no-fund --prefix "$dir/js" "${node_packages[@]}" ||
        { skip "the JavaScript SDK could not be installed"; return 1; }
}

python=false node=false
has_python && python=true
has_node && node=true
if ! $python && ! $node; then exit 0; fi

# As the other tests build it, so that nothing is built twice.
"${CARGO:-cargo}" build --locked --quiet --workspace --bin hart --example conformance_server
target=${CARGO_TARGET_DIR:-target}

# Of an earlier time.
rm -rf "$dir/home" "$dir/model.port" "$dir/server.out"

# The model that does what the last message says, and the server in front of it, on ports that are free.
python3 -u - "$dir/model.port" <<'PY' &
import sys
sys.argv, port = ["mock_openai.py"], sys.argv[1]
sys.path.insert(0, "contracts/conformance")
import mock_openai
from http.server import ThreadingHTTPServer
server = ThreadingHTTPServer(("127.0.0.1", 0), mock_openai.H)
server.daemon_threads = True
open(port, "w").write(str(server.server_address[1]))
server.serve_forever()
PY
started+=($!)
wait_for() {
    for _ in $(seq 600); do
        [ -s "$1" ] && return
        sleep 0.05
    done
    echo "$2 did not start" >&2
    exit 1
}
wait_for "$dir/model.port" "the model"
HART_HOME=$dir/home "$target/debug/examples/conformance_server" --port 0 \
    --model-base-url "http://127.0.0.1:$(cat "$dir/model.port")/v1" >"$dir/server.out" 2>"$dir/server.err" &
started+=($!)
wait_for "$dir/server.out" "the server"
url=$(head -1 "$dir/server.out")

begun=$SECONDS
: >"$dir/python.log"
: >"$dir/javascript.log"
# Their exit code leaves out the level `could`; the log is looked at instead.
if $python; then
    "$dir/py/bin/python" contracts/conformance/conformance_py.py "$url" agent >"$dir/python.log" 2>&1 || true
    tail -1 "$dir/python.log" | sed 's/^/Python SDK: /'
fi
if $node; then
    node contracts/conformance/conformance_js.mjs "$url" agent --modules "$dir/js" >"$dir/javascript.log" 2>&1 || true
    tail -1 "$dir/javascript.log" | sed 's/^/JavaScript SDK and hooks: /'
fi
echo "$((SECONDS - begun)) s"

failed=0
for log in "$dir/python.log" "$dir/javascript.log"; do
    [ -s "$log" ] || continue
    grep -qE '^[0-9]+ passed' "$log" || { tail -5 "$log" >&2; echo "$log: the checks did not come to an end" >&2; failed=1; }
    ! grep -E '^(FAIL [A-Z0-9]+ \[(must|should|could)\]|SKIP)' "$log" >&2 || failed=1
done
exit $failed
