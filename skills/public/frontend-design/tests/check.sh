#!/bin/sh
# Checks pages and colours with known answers, good and bad; exit 0 means that all was right.
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
silent() {
    if cat "$out/stdout" "$out/stderr" | grep -F -q -- "$1"; then echo "FAIL: these words should not be there: $1" >&2; exit 1; fi
    count=$((count + 1))
}
page() { python3 scripts/page_check.py "$@"; }
colours() { python3 scripts/colours.py "$@"; }

run 0 "help" page --help
run 0 "help" colours --help
run 0 "the starter has nothing to mend" page assets/starter.html --strict
says "0 errors, 0 warnings"
run 1 "a page with every mistake" page tests/data/bad.html
says "[lang] the page does not say its language"
says "[title] the page has no title"
says "[viewport] zooming is forbidden"
says "[main]"
says "[heading-order] heading level jumps from 1 to 3"
says "light: #aaaaaa on #ffffff is 2.32:1, needs 4.5:1 ('too light')"
says "light: #555555 on #333333 is 1.69:1"
silent "#888888"
says "dark: #111111 on #000000 is 1.11:1"
silent "just passes"
silent "unknown ground"
silent "never seen"
says "[alt] picture without alt: a.png"
says "[alt] alt is a file name"
says "[label] <input> without a label; a placeholder is no label"
says "[reference] for='nobody' points to nothing"
says "[name] a button without a name"
says "[name] a link without a name"
says "[reference] the link #nowhere has no target"
says "[inline-handler] onclick on <div>"
says "javascript:"
says "[keyboard] a <div> plays a button"
says "[id] the id 'twice' occurs 2 times"
says "an iframe without a title"
says "[external] needs the network"
says "[motion] <video> plays sound by itself"
says "[motion] things move"
says "[focus] the focus outline is taken away"
says "[responsive] a fixed width of 900px"
says "[table] a table without header cells"
run 1 "as JSON" page tests/data/bad.html --json
cp "$out/stdout" "$out/bad.json"
run 2 "no such page" page "$out/none.html"
says "No such file"
printf 'only words' >"$out/words.html"
run 2 "no HTML in it" page "$out/words.html"
printf '\377\376' >"$out/binary.html"
run 2 "not text" page "$out/binary.html"

run 0 "black on white" colours contrast black '#fff'
says "21.00:1 passes"
run 1 "grey on white" colours contrast '#777' white
says "4.48:1 fails (needs 4.5:1)"
says "nearest that passes: #"
run 0 "large text needs less" colours contrast '#777' white --large
run 0 "other ways to write colours" colours contrast 'rgb(0 0 0 / 100%)' 'hsl(0, 0%, 100%)'
says "21.00:1"
rm -f "$out/tokens.txt"
run 0 "a scale" colours scale '#0b6e5f'
cp "$out/stdout" "$out/scale.txt"
for brand in '#b4491f' '#ffd400' '#0000ff' '#101010' '#e91e63' '#7fff00'; do
    run 0 "tokens of $brand" colours tokens "$brand"
    cat "$out/stdout" >>"$out/tokens.txt"
done
run 2 "not a colour" colours tokens bluish
says "'bluish' is not a colour"
python3 tests/verify.py "$out"
echo "frontend-design: $count runs and messages right; results in $out"
