#!/bin/sh
# Runs the scripts of @NAME@ on good and bad input; exit 0 means that the results were right.
# Usage: tests/check.sh [WRITABLE_DIR]
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$(mktemp -d)}
mkdir -p "$out"
cd "$here"
export PYTHONDONTWRITEBYTECODE=1
printf 'one two\nthree\n' >"$out/good.txt"
got=$(python3 scripts/@MODULE@.py "$out/good.txt")
[ "$got" = '{"lines": 2, "words": 3}' ] || { echo "FAIL: $got" >&2; exit 1; }
if python3 scripts/@MODULE@.py "$out/none.txt" 2>"$out/stderr"; then echo "FAIL: a missing file was accepted" >&2; exit 1; fi
grep -q 'cannot be read' "$out/stderr" || { echo "FAIL: no reason given" >&2; exit 1; }
python3 scripts/@MODULE@.py --help >/dev/null
echo "@NAME@: all right; files in $out"
