#!/bin/sh
# Draws every kind of chart from good and bad data and checks the drawings; exit 0 means that all were right.
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
chart() { python3 scripts/chart.py "$@"; }

run 0 "help" chart --help
says "Exit codes"
run 0 "line" chart line tests/data/sales.csv --x month --unit € --title "Revenue & <costs>" --hline 160:plan -o "$out/line.svg"
says "7 rows, 20 values"
run 0 "bar" chart bar tests/data/votes.csv --sort desc --title Votes -o "$out/bar.svg"
printf 'k,v\na,50\nb,60\n' >"$out/near.csv"
run 0 "bars stand on zero" chart bar "$out/near.csv" -o "$out/near.svg"
printf '[{"k":"a\\u0001b","v":1}]' >"$out/control.json"
run 0 "control characters in labels" chart bar "$out/control.json" -o "$out/control.svg"
run 0 "bar top" chart bar tests/data/votes.csv --top 2 --vertical -o "$out/top.svg"
run 0 "stacked percent" chart stacked tests/data/mix.json --x year --y share --group source --percent -o "$out/stacked.svg"
run 0 "scatter" chart scatter tests/data/points.jsonl --x weight --y mpg --group origin --trend --theme dark -o "$out/scatter.svg"
run 0 "page" chart bar tests/data/mix.json --x source --y share --agg sum -o "$out/deep/er/page.html"
awk 'BEGIN{print "v"; for(i=0;i<1000;i++) print (i*7919)%1000}' >"$out/even.csv"
run 0 "histogram" chart histogram "$out/even.csv" --y v --bins 10 -o "$out/histogram.svg"
run 0 "standard input" sh -c 'printf "a,b\nx,1\ny,-2\n" | python3 scripts/chart.py bar - -o "$1"' sh "$out/stdin.svg"
awk 'BEGIN{print "day,n"; for(i=1;i<=28;i++) printf "2024-02-%02d,%d\n", i, 10^(i%5)}' >"$out/log.csv"
run 0 "log axis" chart line "$out/log.csv" --log-y -o "$out/log.svg"

run 2 "no such file" chart bar "$out/none.csv"
says "cannot read"
run 2 "no such column" chart line tests/data/sales.csv --y profit -o "$out/x.svg"
says "the columns are: month, revenue, costs, target"
printf 'a,b\nx,1\ny,lots\n' >"$out/text.csv"
run 2 "text among numbers" chart bar "$out/text.csv" -o "$out/x.svg"
says "data row 2: 'lots' is not a number"
run 2 "repeated places" chart bar tests/data/mix.json --x source --y share -o "$out/x.svg"
says "--agg sum"
run 2 "bars on a log axis" chart bar tests/data/sales.csv --y costs --log-y -o "$out/x.svg"
printf '' >"$out/empty.csv"
run 2 "empty file" chart bar "$out/empty.csv" -o "$out/x.svg"
says "is empty"
printf 'a,b\n1,2,3\n' >"$out/ragged.csv"
run 2 "too many cells" chart bar "$out/ragged.csv" -o "$out/x.svg"
says "row 2 has 3 cells"
printf '[{"a":1},' >"$out/broken.json"
run 2 "broken JSON" chart bar "$out/broken.json" -o "$out/x.svg"
says "not valid JSON"
awk 'BEGIN{printf "x"; for(i=0;i<9;i++) printf ",s%d",i; print ""; printf "1"; for(i=0;i<9;i++) printf ",%d",i; print ""}' >"$out/many.csv"
run 2 "too many series" chart line "$out/many.csv" --y s0,s1,s2,s3,s4,s5,s6,s7,s8 -o "$out/x.svg"
says "too many to tell apart"
run 2 "bad option" chart bar tests/data/votes.csv --hline high
run 2 "output that cannot be written" chart bar tests/data/votes.csv -o "$out/empty.csv/x.svg"
says "cannot write"
[ ! -e "$out/x.svg" ] || { echo "FAIL: a refused chart left a file" >&2; exit 1; }

python3 tests/verify.py "$out"
echo "chart-making: $count runs and messages right; drawings in $out"
