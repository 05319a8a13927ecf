#!/bin/sh
# Builds a small ledger by the commands, then breaks it in every way the rules name; exit 0 means that all was noticed.
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
ledger() { python3 scripts/ledger.py "$@"; }

L="$out/ledger.json"
rm -f "$L"
mkdir -p "$out/sources"
cp tests/data/*.txt "$out/sources/"

run 0 "help" ledger --help
run 0 "start" ledger init "$L" --question "Did returns fall?"
run 2 "no second start" ledger init "$L" --question "again"
says "exists already"
run 1 "an empty ledger is not good" ledger check "$L"
says "there is no claim yet"
run 0 "first source" ledger source "$L" --title "Returns 2025" --url https://stat.example.org/returns --publisher "Statistics Office" --date 2025-06 --kind primary --file sources/office.txt
says "S1"
run 0 "second source" ledger source "$L" --title "Shop news" --url https://news.example.com/a --date 2025-07 --file sources/news.txt
says "S2"
run 0 "the same address is not listed twice" ledger source "$L" --title "Again" --url https://news.example.com/a/
says "S2 (already there)"
run 0 "claim over two quotes" ledger claim "$L" --text "Returns fell by a third in 2025." --quote "S1:fell by 34 % between January and June, the \"largest\" drop" --quote "S2:retailers welcomed [...] far fewer parcels" --confidence high
says "C1"
run 0 "open claim without source" ledger claim "$L" --text "Why is unknown." --status open
run 0 "a good ledger" ledger check "$L"
says "2 sources, 2 claims (1 supported, 0 disputed, 1 open); 0 errors, 0 warnings"
run 0 "source list" ledger sources "$L"
says "- [S1] Statistics Office, *Returns 2025*, 2025-06. <https://stat.example.org/returns>"
run 0 "a report that fits" ledger check "$L" --report tests/data/report.md --strict
run 1 "a report that does not" ledger check "$L" --report tests/data/report-bad.md --strict
says "report:3: error: cites [S7], which is not in the ledger"
says "report:5: warning: states '40 %' without a source"
says "C1: warning: none of its sources is cited"
says "a quotation that no claim of the ledger holds"

run 2 "claim with an unknown source" ledger claim "$L" --text x --source S9
says "unknown source S9; known are S1, S2"
run 2 "claim without any source" ledger claim "$L" --text x
says "needs --source or --quote"
run 2 "a quote without its source" ledger claim "$L" --text x --quote "just words"
run 2 "a saved text that is not there" ledger source "$L" --title x --file sources/none.txt
says "does not exist beside the ledger"
run 2 "no ledger" ledger check "$out/none.json"
says "start one with"
printf '{"sources": 3}' >"$out/shape.json"
run 2 "a ledger of another shape" ledger check "$out/shape.json"
says "must be a list of objects"
printf '{' >"$out/broken.json"
run 2 "broken JSON" ledger check "$out/broken.json"
says "not valid JSON"
python3 tests/verify.py break "$out"
run 1 "a ledger broken in many ways" ledger check "$out/many.json"
says "S1: error: two sources carry this id"
says "S3: error: is not used by any claim"
says "S3: error: has neither an address nor a saved file"
says "S4: error: nowhere is not a complete address"
says "S4: warning: has no date"
says "C1: error: has no source"
says "C2: error: names source S8, which is not listed"
says "C3: error: S1 does not say 'fell by 43 % between January and June'; nearest: 'fell by 34 % between January and June"
says "C4: error: is marked high, but rests on one publisher"
says "C5: error: quotes S2, which is not among its sources"
says "C6: error: S1 does not say 'between January and June'"
says "C7: warning: is disputed, but only one side has a source"
says "C8: error: confidence 'sure' is none of"
run 1 "as JSON" ledger check "$out/many.json" --json
cp "$out/stdout" "$out/many-findings.json"
python3 tests/verify.py check "$out"
echo "deep-research: $count runs and messages right; ledgers in $out"
