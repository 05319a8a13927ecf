#!/bin/sh
# Profiles, queries and compares small tables with known answers, and feeds the scripts bad input; exit 0 means that all was right.
# Usage: tests/check.sh [WRITABLE_DIR]
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$(mktemp -d)}
mkdir -p "$out"
cd "$here"
export PYTHONDONTWRITEBYTECODE=1 PYTHONIOENCODING=utf-8
command -v python3 >/dev/null 2>&1 || { echo "check: python3 is missing; the scripts of this skill need it" >&2; exit 1; }
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
profile() { python3 scripts/profile_table.py "$@"; }
query() { python3 scripts/query.py "$@"; }
compare() { python3 scripts/compare.py "$@"; }

python3 tests/verify.py make "$out"

run 0 "help" profile --help
run 0 "help" query --help
run 0 "help" compare --help
run 0 "profile as text" profile tests/data/orders.csv
says "orders: 12 rows, 6 columns"
says "1 rows repeat another row exactly"
says "region: 1 values are written in several ways, e.g. 'South' / 'south'"
says "separator is ';'"
run 0 "profile as JSON" profile --json tests/data/orders.csv tests/data/regions.json "$out/book.xlsx" "$out/line.csv"
cp "$out/stdout" "$out/profile.json"

run 0 "list of tables" query tests/data/orders.csv "$out/book.xlsx"
says "orders (12 rows): order_id integer, day date"
says "book_first_sheet (3 rows): name text, when date, n integer, share number, ok boolean"
run 0 "group and aggregates" query tests/data/orders.csv "SELECT lower(region) AS r, count(*) AS n, sum(amount) AS s, median(amount) AS m FROM (SELECT DISTINCT * FROM orders) GROUP BY 1 ORDER BY 1" --format json
cp "$out/stdout" "$out/group.json"
run 0 "join of two files" query tests/data/orders.csv tests/data/regions.json 'SELECT "lead.name" AS lead, sum(amount) AS s FROM orders JOIN regions USING (region) GROUP BY 1 ORDER BY 1' -o "$out/join.csv"
run 0 "pivot" query tests/data/orders.csv --pivot "upper(region)" "substr(day,1,7)" "sum(amount)" -o "$out/pivot.csv"
run 0 "statistics" query "$out/line.csv" "SELECT corr(x, y) AS r, stddev(x) AS sd, quantile(x, 0.9) AS q, mode(g) AS m FROM line" --format json
cp "$out/stdout" "$out/stats.json"
run 0 "compare" compare "$out/line.csv" --value y --group g --a high --b low --json
cp "$out/stdout" "$out/compare.json"
run 0 "compare again" compare "$out/line.csv" --value y --group g --a high --b low --json
cmp "$out/stdout" "$out/compare.json" || { echo "FAIL: the same seed gave other numbers" >&2; exit 1; }

run 2 "no such file" profile "$out/none.csv"
says "no such file"
: >"$out/empty.csv"
run 2 "empty file" query "$out/empty.csv"
says "is empty"
run 2 "unknown column" query tests/data/orders.csv "SELECT price FROM orders"
says "no such column: price. Tables: orders(order_id, day"
run 2 "unknown table" query tests/data/orders.csv "WITH x AS (SELECT 1) SELECT * FROM nothere"
run 2 "other files stay out of reach" query tests/data/orders.csv "ATTACH '$out/new.db' AS other"
[ ! -e "$out/new.db" ] || { echo "FAIL: SQL made a file" >&2; exit 1; }
run 2 "broken JSON" profile "$out/broken.json"
says "neither JSON nor JSON Lines"
run 2 "damaged workbook" profile "$out/damaged.xlsx"
says "damaged workbook"
run 2 "a zip that is no workbook" profile "$out/other.xlsx"
says "not an Excel workbook"
run 2 "unknown group" compare "$out/line.csv" --value y --group g --a high --b none
says "group 'none' has 0 values"
run 2 "unknown value column" compare "$out/line.csv" --value z --group g
says "the columns are: x, y, g"
run 2 "no file before the SQL" query "SELECT 1"

python3 tests/verify.py check "$out"
echo "data-analysis: $count runs and messages right; results in $out"
