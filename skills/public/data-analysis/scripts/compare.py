#!/usr/bin/env python3
"""Compares a measure between two groups: difference, effect size, interval by bootstrap, p by permutation.

Invariant: the same file, columns and seed give the same numbers.
"""
import argparse
import json
import math
import random
import sys
from bisect import bisect_left, bisect_right

sys.dont_write_bytecode = True
from profile_table import quantile  # noqa: E402
from tables import TableError, missing, number, read_tables  # noqa: E402


def _mean(values):
    return math.fsum(values) / len(values)


def _median(values):
    return quantile(sorted(values), 0.5)


def compare(a, b, statistic, rounds, seed):
    """Difference (a minus b) with 95 % interval, p and Cliff's delta."""
    dice = random.Random(seed)
    observed = statistic(a) - statistic(b)
    boot = sorted(statistic(dice.choices(a, k=len(a))) - statistic(dice.choices(b, k=len(b))) for _ in range(rounds))
    pooled, extreme = a + b, 0
    for _ in range(rounds):
        dice.shuffle(pooled)
        extreme += abs(statistic(pooled[:len(a)]) - statistic(pooled[len(a):])) >= abs(observed) - 1e-12
    ordered, above = sorted(b), 0
    for value in a:
        above += bisect_left(ordered, value) - (len(ordered) - bisect_right(ordered, value))
    return {"difference": observed, "low": quantile(boot, 0.025), "high": quantile(boot, 0.975), "p": (extreme + 1) / (rounds + 1), "cliffs_delta": above / (len(a) * len(b))}


def main(arguments=None):
    """Reads, compares, prints; the exit code."""
    parser = argparse.ArgumentParser(prog="compare.py", description="Is the difference between two groups more than chance? Exit codes: 0 done, 2 bad input.")
    parser.add_argument("file")
    parser.add_argument("--value", required=True, help="numeric column")
    parser.add_argument("--group", required=True, help="column with the groups")
    parser.add_argument("--a", help="first group (default: the two most frequent)")
    parser.add_argument("--b", help="second group")
    parser.add_argument("--statistic", choices=("mean", "median"), default="mean")
    parser.add_argument("--rounds", type=int, default=2000, help="resamplings (default 2000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    try:
        table = read_tables(options.file)[0]
        for name in (options.value, options.group):
            if name not in table.columns:
                raise TableError(f"there is no column {name!r}; the columns are: {', '.join(table.columns)}")
        if not 100 <= options.rounds <= 100000:
            raise TableError("--rounds must be 100 to 100000")
        value_at, group_at, groups, skipped = table.columns.index(options.value), table.columns.index(options.group), {}, 0
        for row in table.rows:
            parsed = None if missing(row[value_at]) else number(row[value_at])
            if parsed is None or missing(row[group_at]):
                skipped += 1
            else:
                groups.setdefault(row[group_at].strip(), []).append(parsed)
        names = [options.a, options.b] if options.a and options.b else sorted(groups, key=lambda name: -len(groups[name]))[:2]
        for name in names:
            if len(groups.get(name, [])) < 3:
                raise TableError(f"group {name!r} has {len(groups.get(name, []))} values; at least 3 are needed. Groups: {', '.join(sorted(groups))}")
        if len(names) < 2:
            raise TableError(f"column {options.group!r} holds fewer than two groups")
    except (TableError, OSError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    a, b = groups[names[0]], groups[names[1]]
    result = compare(a, b, _mean if options.statistic == "mean" else _median, options.rounds, options.seed)
    result.update({"a": names[0], "b": names[1], "n_a": len(a), "n_b": len(b), "mean_a": _mean(a), "mean_b": _mean(b), "median_a": _median(a), "median_b": _median(b), "skipped_rows": skipped})
    if options.json:
        print(json.dumps(result, ensure_ascii=False))
        return 0
    size = abs(result["cliffs_delta"])
    words = "negligible" if size < 0.147 else "small" if size < 0.33 else "medium" if size < 0.474 else "large"
    print(f"{names[0]} (n={len(a)}): mean {_mean(a):.4g}, median {_median(a):.4g}\n{names[1]} (n={len(b)}): mean {_mean(b):.4g}, median {_median(b):.4g}")
    print(f"difference of {options.statistic}s: {result['difference']:.4g}, 95 % interval {result['low']:.4g} to {result['high']:.4g}, p = {result['p']:.4f} (permutation)")
    print(f"effect: Cliff's delta {result['cliffs_delta']:.3f} ({words})" + (f"; {skipped} rows without value or group were left out" if skipped else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
