#!/usr/bin/env python3
"""@TITLE@: counts lines and words of a text file (replace this with what the skill needs).

Invariant: exit 0 means done, 2 means unusable input with the reason on standard error; input files are only read.
"""
import argparse
import json
import sys


def main(arguments=None):
    """Reads, works, prints; the exit code."""
    parser = argparse.ArgumentParser(prog="@MODULE@.py", description="Count lines and words. Exit codes: 0 done, 2 unusable input.")
    parser.add_argument("file")
    options = parser.parse_args(arguments)
    try:
        with open(options.file, encoding="utf-8") as handle:
            text = handle.read()
    except (OSError, UnicodeDecodeError) as error:
        print(f"@MODULE@: {options.file} cannot be read ({error})", file=sys.stderr)
        return 2
    print(json.dumps({"lines": len(text.splitlines()), "words": len(text.split())}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
