#!/bin/sh
# Scaffolds, lints and packs skills, good and broken in every way the rules name; exit 0 means that all was right.
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
skill() { python3 scripts/skill.py "$@"; }
W="$out/work"
rm -rf "$W"
mkdir -p "$W"

run 0 "help" skill --help
run 0 "a new skill" skill new word-counting -o "$W" --script --description "Counts words: \"all\" of them in text files. Use when the user asks how long a text is or wants lines and words."
run 1 "it has placeholders" skill lint "$W/word-counting"
says "a placeholder is left: TODO"
says "a placeholder is left in author"
python3 tests/verify.py fill "$W/word-counting"
run 0 "filled in it is good" skill lint "$W/word-counting" --strict
run 0 "its own test passes" sh "$W/word-counting/tests/check.sh" "$out/inner"
says "word-counting: all right"
run 0 "pack" skill pack "$W/word-counting" -o "$out/word-counting.skill"
says "3 files"
run 0 "pack again" skill pack "$W/word-counting" -o "$out/again.skill"
cmp "$out/word-counting.skill" "$out/again.skill" || { echo "FAIL: the same package gave other bytes" >&2; exit 1; }
run 0 "this skill keeps its own rules" skill lint . --strict
run 2 "the name is taken" skill new word-counting -o "$W" --description x
says "exists already"
run 2 "a bad name" skill new Word_Count -o "$W" --description x
run 2 "a reserved name" skill new help -o "$W" --description x
run 2 "no folder" skill lint "$W/none"
run 2 "broken packages are not packed" skill pack "$W" -o "$out/x.skill"
says "nothing packed"
[ ! -e "$out/x.skill" ] || { echo "FAIL: a refused package was written" >&2; exit 1; }

python3 tests/verify.py break "$W"
for each in no-front open-front colon-in-value other-name twice indented; do
    run 1 "broken: $each" skill lint "$W/$each"
    cp "$out/stdout" "$out/lint-$each.txt"
done
run 1 "broken in many ways" skill lint "$W/many" --against "$W"
says "SKILL.md:3: warning: the description does not say when to use the skill"
says "write the description in the third person"
says "unknown key 'colour'"
says "allowed-tools must be a list of names"
says "references/gone.md does not exist"
says "references/lonely.md:1: warning: is never mentioned"
says "scripts/bad.py:1: error: does not parse"
says "scripts/imports.py:1: warning: imports numpy"
says "scripts/imports.py:1: warning: has no --help"
says "assets/blob.bin:1: error: is an archive"
says "assets/key.txt:2: error: looks like a secret key"
says "references/far.md:1: error: text stands behind more than a hundred empty lines"
says "references/hidden.md:1: error: holds invisible characters"
says "link.md:1: error: is a link"
says "inner/SKILL.md:1: error: a second SKILL.md"
says "tests/check.sh:1: warning: there are scripts, but no test"
says "with 'word-counting'; agents will mix them up"
run 1 "as JSON" skill lint "$W/many" --json
cp "$out/stdout" "$out/many.json"
python3 tests/verify.py check "$out"
echo "skill-creator: $count runs and messages right; packages in $out"
