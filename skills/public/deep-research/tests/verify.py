"""Writes a ledger with many mistakes ('break') and checks files against other readings of them ('check').

Invariant: what the commands wrote is read back as plain JSON here, not through their own code.
"""
import json
import os
import sys

step, out = sys.argv[1], sys.argv[2]


def expect(good, words):
    if not good:
        sys.exit(f"FAIL {words}")


if step == "break":
    source = {"id": "S1", "title": "t", "url": "https://a.example.org/x", "date": "2025", "file": "sources/office.txt"}
    claims = [
        {"id": "C1", "text": "nothing behind it"},
        {"id": "C2", "text": "a source that is not listed", "sources": ["S8"]},
        {"id": "C3", "text": "a wrong number", "sources": ["S1"], "quotes": [{"source": "S1", "text": "fell by 43 % between January and June"}]},
        {"id": "C4", "text": "too sure", "sources": ["S1"], "confidence": "high", "quotes": [{"source": "S1", "text": "led the decline with 41 %"}]},
        {"id": "C5", "text": "a foreign quote", "sources": ["S1"], "quotes": [{"source": "S2", "text": "far fewer parcels"}]},
        {"id": "C6", "text": "pieces in the wrong order", "sources": ["S1"], "quotes": [{"source": "S1", "text": "since the count began [...] between January and June"}]},
        {"id": "C7", "text": "one side", "sources": ["S1", "S4"], "status": "disputed"},
        {"id": "C8", "text": "odd word", "sources": ["S2"], "confidence": "sure"},
    ]
    sources = [source, dict(source), {"id": "S2", "title": "u", "url": "https://b.example.org", "date": "2025", "file": "sources/news.txt"}, {"id": "S3", "title": "v"}, {"id": "S4", "title": "w", "url": "nowhere", "publisher": "a.example.org"}]
    with open(os.path.join(out, "many.json"), "w", encoding="utf-8") as handle:
        json.dump({"question": "q", "sources": sources, "claims": claims}, handle)
else:
    with open(os.path.join(out, "ledger.json"), encoding="utf-8") as handle:
        ledger = json.load(handle)
    expect([source["id"] for source in ledger["sources"]] == ["S1", "S2"], "two sources")
    expect(ledger["claims"][0]["sources"] == ["S1", "S2"] and len(ledger["claims"][0]["quotes"]) == 2, "quotes name their sources")
    expect(ledger["claims"][1] == {"id": "C2", "text": "Why is unknown.", "confidence": "medium", "status": "open"}, "an open claim")
    expect(not os.path.exists(os.path.join(out, "ledger.json.new")), "no half-written file is left")
    with open(os.path.join(out, "many-findings.json"), encoding="utf-8") as handle:
        findings = json.load(handle)
    wrong = {finding["where"] for finding in findings if finding["level"] == "error"}
    expect({"C1", "C2", "C3", "C4", "C5", "C6", "C8", "S1", "S3", "S4"} <= wrong, f"errors at {sorted(wrong)}")
    expect(not any(finding["where"] == "C4" and "does not say" in finding["words"] for finding in findings), "a quote across a broken line counts as verbatim")
    print("ok   6 facts of the ledgers")
