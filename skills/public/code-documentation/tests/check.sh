#!/bin/sh
# Takes stock of a small project in six languages whose gaps are known; exit 0 means that exactly those were found.
# Usage: tests/check.sh [WRITABLE_DIR]
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$(mktemp -d)}
mkdir -p "$out"
cd "$here"
export PYTHONDONTWRITEBYTECODE=1 PYTHONIOENCODING=utf-8
command -v python3 >/dev/null 2>&1 || { echo "check: python3 is missing; the script of this skill needs it" >&2; exit 1; }
count=0

# run CODE NAME COMMAND...: the command must exit with CODE.
run() {
    want=$1 name=$2; shift 2
    got=0
    "$@" >"$out/stdout" 2>"$out/stderr" || got=$?
    if [ "$got" -ne "$want" ]; then
        echo "FAIL $name: exit $got, expected $want" >&2; cat "$out/stdout" "$out/stderr" >&2; exit 1
    fi
    count=$((count + 1)); echo "ok   $name"
}
# says TEXT: the last command printed TEXT.
says() {
    cat "$out/stdout" "$out/stderr" | grep -F -q -- "$1" || { echo "FAIL: expected the words: $1" >&2; cat "$out/stdout" "$out/stderr" >&2; exit 1; }
    count=$((count + 1))
}
docs() { python3 scripts/docs_check.py "$@"; }
P=tests/data/project

run 0 "help" docs --help
run 1 "gaps of the project" docs gaps $P
says "src/shop.py:26: method Cart.add is not documented"
says "src/shop.py:41: class Missing is not documented"
says "src/shop.py:7: function buy does not mention parameter count, exception ValueError"
says "src/lib.rs:8: function bare is not documented"
says "src/main.go:6: method Stop is not documented"
says "src/app.ts:9: value limit is not documented"
says "src/Api.java:4: method name is not documented"
says "src/api.h:4: function api_close is not documented"
run 1 "as JSON" docs gaps $P --json
cp "$out/stdout" "$out/gaps.json"
run 0 "a lower goal is met" docs gaps $P --min 40
run 1 "a higher goal is not" docs gaps $P --min 90
run 0 "its own scripts meet a fair goal" docs gaps scripts --min 70
run 1 "drift" docs drift $P --names
says "docs/guide.md:3: the link #nothing names a heading that does not exist"
says "docs/guide.md:3: the link gone.md leads nowhere"
says "docs/guide.md:3: the link other.md#elsewhere names a heading"
says 'docs/guide.md:4: the path `src/old.py` does not exist'
says 'docs/guide.md:4: `sell_all()` does not occur in the code'
says "docs/guide.md:8: this Python example does not parse"
says "docs/guide.md:17: this JSON example does not parse"
says "2 pages, 7 places that do not fit"
run 0 "a page that fits" docs drift $P $P/docs/other.md
mkdir -p "$out/broken"
printf 'def f(:\n' >"$out/broken/a.py"
printf '\377\376' >"$out/broken/b.py"
printf '"""Fine."""\n' >"$out/broken/c.py"
run 0 "files that do not parse are told" docs gaps "$out/broken"
says "a.py: SyntaxError"
says "b.py: UnicodeDecodeError"
run 2 "no such folder" docs gaps "$out/none"
says "no such file or folder"
mkdir -p "$out/void"
run 2 "no source files" docs gaps "$out/void"
says "no source files"
run 2 "no pages" docs drift "$out/void"
says "no Markdown files"
run 2 "no command" docs
python3 tests/verify.py "$out"
echo "code-documentation: $count runs and messages right; results in $out"
