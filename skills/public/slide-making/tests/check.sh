#!/bin/sh
# Builds decks from good and bad outlines and checks the packages part by part; exit 0 means that all were right.
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
slides() { python3 scripts/slides.py "$@"; }

run 0 "help" slides build --help
run 0 "the example outline has no problem" slides check assets/outline.md
says "7 slides (1 sections, 5 with content), 0 problems"
run 0 "the example outline builds" slides build assets/outline.md --strict --pptx "$out/example.pptx" --html "$out/example.html"
run 0 "every block builds" slides build tests/data/full.md --pptx "$out/new/full.pptx" --html "$out/full.html"
run 0 "the same outline again" slides build tests/data/full.md --pptx "$out/again.pptx"
cmp "$out/new/full.pptx" "$out/again.pptx" || { echo "FAIL: the same outline gave other bytes" >&2; exit 1; }
run 0 "read what was written" slides read "$out/new/full.pptx"
says "## Every block & <every> trick"
says "  - second level <tag>"
says "| Beta | 22 |"
says "Notes: Say this & that."

run 1 "a bad outline" slides check tests/data/bad.md
says "bad.md:1: error: unknown theme 'pink'"
says "bad.md:4: warning: unknown key 'colour'"
says "bad.md:6: error: text before the first slide"
says "picture missing.png"
says "unknown chart 'pie'"
says "chart value 'many' of 'y' is not a number"
says "only local files can be put into a deck"
says "2 slides are titled 'One'"
run 2 "a bad outline is not built" slides build tests/data/bad.md --pptx "$out/bad.pptx"
[ ! -e "$out/bad.pptx" ] || { echo "FAIL: a refused outline left a file" >&2; exit 1; }
{ echo "## Too much"; i=0; while [ $i -lt 30 ]; do echo "- a bullet with quite a lot of words in it that goes on and on, number $i"; i=$((i + 1)); done; } >"$out/long.md"
run 0 "an overfull slide warns" slides check "$out/long.md"
says "more than fits"
run 2 "strict refuses warnings" slides build "$out/long.md" --strict --pptx "$out/long.pptx"
run 2 "no such outline" slides check "$out/none.md"
says "No such file"
run 2 "nothing to write" slides build assets/outline.md
printf 'not a zip' >"$out/fake.pptx"
run 2 "not a pptx" slides read "$out/fake.pptx"
says "not a readable .pptx"
printf '\377\376\000' >"$out/binary.md"
run 2 "not text" slides check "$out/binary.md"
: >"$out/empty.md"
printf -- '---\ntitle: T\nlang: e"n\n---\n## A\n- x\n' >"$out/lang.md"
run 1 "a language that is none" slides check "$out/lang.md"
says "is not a language tag"
printf '## A \001\n- control \013 characters\n' >"$out/control.md"
run 0 "control characters are left out" slides build "$out/control.md" --pptx "$out/control.pptx" --html "$out/control.html"
run 1 "an empty outline" slides check "$out/empty.md"
says "there is no slide"

python3 tests/verify.py "$out"
echo "slide-making: $count runs and messages right; decks in $out"
