"""Compares the inventory of the sample project with the one written down here.

Invariant: a symbol found too much is as wrong as one that was missed.
"""
import json
import os
import sys

with open(os.path.join(sys.argv[1], "gaps.json"), encoding="utf-8") as handle:
    result = json.load(handle)
missing = {f"{os.path.basename(symbol['path'])} {symbol['name']}" for symbol in result["missing"]}
want = {"shop.py Cart.add", "shop.py Missing", "lib.rs bare", "lib.rs LIMIT", "main.go Stop", "main.go Server", "app.ts limit", "Api.java name", "api.h TWICE", "api.h api_close"}
counts = {name: (tally["documented"], tally["symbols"]) for name, tally in result["languages"].items()}
expected = {"python": (4, 6), "rust": (2, 4), "go": (1, 3), "typescript": (2, 3), "java": (2, 3), "c": (1, 3)}
for good, words in ((missing == want, f"missing: too much {sorted(missing - want)}, too little {sorted(want - missing)}"), (counts == expected, f"counts {counts}"), (result["symbols"] == 22 and result["documented_percent"] == 54.5, f"share {result['documented_percent']}"), (not result["unreadable"], "all files could be read")):
    if not good:
        sys.exit(f"FAIL {words}")
print("ok   4 facts of the inventory")
