#!/bin/sh
# Checks and renders good and bad reports; exit 0 means that findings and pages were right.
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
report() { python3 scripts/report.py "$@"; }

run 0 "help" report --help
run 0 "a good report" report check tests/data/good.md
says "good.md:37: warning: javascript:alert(1): unusual kind of link"
says "0 errors, 1 warnings"
run 1 "a bad report" report check tests/data/bad.md --citations
says "bad.md:1: error: no title"
says "bad.md:3: error: heading level jumps from 1 to 3"
says "bad.md:5: error: missing.md does not exist"
says "bad.md:5: error: no heading for the link #nowhere"
says "bad.md:5: error: gone.png does not exist"
says "bad.md:5: warning: picture gone.png has no description"
says "bad.md:5: warning: the link text 'here' says nothing"
says "bad.md:5: error: footnote [^lost] is used but not written"
says "bad.md:5: error: a placeholder is left: 'TODO'"
says "bad.md:7: error: section 'Same' is empty"
says "bad.md:9: warning: heading 'Same' stands in line 7 too"
says "bad.md:11: error: citation [3] has no entry"
says "bad.md:15: error: this table row has 3 cells, the header has 2"
says "https://nodots is not a complete address"
says "footnote [^unused] is written but never used"
says "source [9] is never cited"
says "this code block is never closed"
run 1 "findings as JSON" report check tests/data/bad.md --json
cp "$out/stdout" "$out/bad.json"
{ echo "# T"; echo; i=0; while [ $i -lt 60 ]; do printf 'word and word after word with more of the words '; i=$((i + 1)); done; echo; } >"$out/long.md"
run 0 "long sentences and paragraphs are warnings" report check "$out/long.md"
says "a sentence of 600 words"
says "a paragraph of 600 words"
run 1 "strict" report check "$out/long.md" --strict
printf '# T\n\nCosts grew by 40 %%.\n' >"$out/uncited.md"
run 1 "figures need citations" report check "$out/uncited.md" --citations --strict
says "figures without a citation"
run 0 "render" report html tests/data/good.md -o "$out/pages/good.html"
run 2 "a missing picture stops the page" report html tests/data/bad.md -o "$out/bad.html"
says "gone.png cannot be read"
[ ! -e "$out/bad.html" ] || { echo "FAIL: a refused page was written" >&2; exit 1; }
run 2 "no such file" report check "$out/none.md"
says "No such file"
: >"$out/empty.md"
run 2 "an empty file" report html "$out/empty.md"
says "is empty"
printf '\377\376x' >"$out/binary.md"
run 2 "not text" report check "$out/binary.md"
run 2 "no command" report
python3 tests/verify.py "$out"
echo "report-writing: $count runs and messages right; pages in $out"
