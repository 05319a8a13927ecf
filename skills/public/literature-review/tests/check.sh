#!/bin/sh
# Takes records of four formats through merge, screening, flow and citing, with good and bad input; exit 0 means that all was right.
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
review() { python3 scripts/review.py "$@"; }
LIB="$out/library.json" LOG="$out/screening.csv"
rm -f "$LOG"

run 0 "help" review --help
run 0 "merge four formats" review merge tests/data/a.bib tests/data/b.ris tests/data/c.csv tests/data/d.nbib -o "$LIB" --log "$out/duplicates.csv"
says "10 records from 4 files, 4 duplicates joined, 1 pairs to look at, 6 left"
says "a.bib: line 10: the entry is not closed"
says "c.csv: row 4: no title"
says "same title, different DOI"
run 0 "screening log" review screen "$LIB" -o "$LOG"
says "6 records, 6 not decided yet"
run 1 "an undecided log has gaps" review flow "$LIB" "$LOG"
says "smith2020: title and abstract not decided"
python3 tests/verify.py decide "$out"
run 0 "a decided log is whole" review flow "$LIB" "$LOG" --svg "$out/flow.svg" --json
cp "$out/stdout" "$out/flow.json"
run 0 "extending keeps decisions" review screen "$LIB" -o "$LOG"
says "6 records, 0 not decided yet"
run 0 "flow in words" review flow "$LIB" "$LOG"
says "identified 10 (a.bib: 3, b.ris: 4, c.csv: 2, d.nbib: 1), duplicates 4"
says "assessed 3, excluded 1 (wrong population: 1)"
says "included 2; 0 problems"
for style in apa ieee vancouver chicago markdown bibtex; do
    run 0 "cite $style" review cite "$LIB" --style "$style"
    cp "$out/stdout" "$out/cite-$style.txt"
done
run 0 "only what is included" review cite "$LIB" --log "$LOG" -o "$out/included.txt"
says "2 references"
printf 'As @larsen2018 and @smith2020 show, mail me@example.org.\n' >"$out/text.md"
run 0 "only what is cited, in order" review cite "$LIB" --cited "$out/text.md" --style vancouver
cp "$out/stdout" "$out/cited.txt"
printf 'As @nobody1999 shows.\n' >"$out/text2.md"
run 2 "a citation without record" review cite "$LIB" --cited "$out/text2.md"
says "cites @nobody1999, not in the library"
run 0 "BibTeX comes back the same" review merge "$out/cite-bibtex.txt" -o "$out/again.json"

run 2 "no such file" review merge "$out/none.bib"
printf 'x,y\n1,2\n' >"$out/other.csv"
run 2 "a table without titles" review merge "$out/other.csv" -o "$out/x.json"
says "has no title column"
: >"$out/empty.ris"
run 2 "an empty file" review merge "$out/empty.ris" -o "$out/x.json"
run 2 "not a library" review screen "$out/flow.json" -o "$out/x.csv"
says "is not a library made by 'merge'"
run 2 "not a log" review flow "$LIB" tests/data/c.csv
says "is not a screening log"
sed 's/wrong population//; s/,include,,unavailable/,perhaps,,unavailable/' "$LOG" >"$out/bad.csv"
run 1 "a log with odd words" review flow "$LIB" "$out/bad.csv"
says "screen is 'perhaps'"
says "excluded by its full text without a reason"
grep -v eco1980 "$LOG" >"$out/short.csv"
run 1 "a log that lost a record" review flow "$LIB" "$out/short.csv"
says "eco1980: in the library, but not in the log"
says "10 found minus 4 duplicates is not 5 screened"
[ ! -e "$out/x.json" ] || { echo "FAIL: refused input left a file" >&2; exit 1; }
python3 tests/verify.py check "$out"
echo "literature-review: $count runs and messages right; results in $out"
