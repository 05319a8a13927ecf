#!/usr/bin/env python3
"""Makes one clean SVG (or HTML) chart from a CSV, TSV, JSON or JSON Lines file; Python standard library only.

Invariant: exit 0 means that a complete file was written; 2 means that nothing was, and standard error says why.
"""
import argparse
import html
import os
import sys

sys.dont_write_bytecode = True
from chart_data import AGGREGATES, DataError, number, read_table  # noqa: E402
from chart_kinds import draw  # noqa: E402

EXAMPLES = """examples:
  chart.py line sales.csv --x month --y revenue,costs --unit € --title "Revenue passed costs in May" -o sales.svg
  chart.py bar survey.csv --x answer --y votes --sort desc --top 8 -o votes.svg
  chart.py stacked energy.csv --x year --y share --group source --percent -o mix.svg
  chart.py scatter cars.csv --x weight --y mpg --group origin --trend -o cars.svg
  chart.py histogram times.csv --y seconds --bins 20 -o times.svg
"""


def main(arguments=None):
    """Parses, draws, writes; the exit code."""
    options = _options(arguments)
    try:
        columns, rows = read_table(options.data)
        if options.kind == "histogram":
            if not (options.y or options.x):
                raise DataError("say which column: --y NAME")
        else:
            options.x = options.x or columns[0]
            if not options.y:
                options.y = [name for name in columns if name not in (options.x, options.group, options.label)][: 1 if options.group else 8]
            if not options.y:
                raise DataError("say which column holds the values: --y NAME")
        if options.group and len(options.y) > 1:
            raise DataError("--group takes one --y column; the group's values become the series")
        svg, table = draw(options, columns, rows)
        text = svg if not options.output.lower().endswith((".html", ".htm")) else _page(options, svg, table)
        folder = os.path.dirname(options.output)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(options.output, "w", encoding="utf-8") as handle:
            handle.write(text)
    except DataError as error:
        print(f"chart: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"chart: cannot write {options.output}: {error.strerror}", file=sys.stderr)
        return 2
    drawn = sum(1 for row in table[1] for cell in row[1:] if cell is not None)
    print(f"{options.output}: {options.kind} chart, {len(table[1])} rows, {drawn} values")
    return 0


def _options(arguments):
    parser = argparse.ArgumentParser(prog="chart.py", description="One clean chart from a table. Exit codes: 0 written, 2 bad input.",
                                     epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("line", "bar", "stacked", "scatter", "histogram"))
    parser.add_argument("data", help="CSV, TSV, JSON or JSON Lines file, or - for standard input")
    parser.add_argument("-o", "--output", default="chart.svg", help="file to write; .html adds a data table (default chart.svg)")
    parser.add_argument("--x", default="", help="column of the x axis (default: the first)")
    parser.add_argument("--y", default="", help="column or columns of values, separated by commas")
    parser.add_argument("--group", help="column whose values become the series (long tables)")
    parser.add_argument("--label", help="scatter: column with a name for each point")
    parser.add_argument("--agg", choices=AGGREGATES, help="how rows with the same x and series become one value")
    parser.add_argument("--title", default="", help="what the chart shows; best as a finding")
    parser.add_argument("--subtitle", default="", help="what is measured, unit, period")
    parser.add_argument("--source", default="", help="where the numbers come from")
    parser.add_argument("--x-title", default="")
    parser.add_argument("--y-title", default="")
    parser.add_argument("--unit", default="", help="added to values: %%, €, $, kg")
    parser.add_argument("--hline", action="append", default=[], metavar="VALUE[:TEXT]", help="a reference line, repeatable")
    parser.add_argument("--sort", choices=("none", "asc", "desc"), default="none", help="bars: order by value")
    parser.add_argument("--top", type=int, default=0, help="bars: keep the N largest, the rest becomes 'Other'")
    parser.add_argument("--percent", action="store_true", help="stacked: shares of 100")
    parser.add_argument("--horizontal", dest="horizontal", action="store_true", default=None, help="bars lie (default: when labels are long)")
    parser.add_argument("--vertical", dest="horizontal", action="store_false", help="bars stand")
    parser.add_argument("--bins", type=int, default=0, help="histogram: about how many bars")
    parser.add_argument("--trend", action="store_true", help="scatter: least-squares line")
    parser.add_argument("--zero", action="store_true", help="line, scatter: start the value axis at zero")
    parser.add_argument("--log-y", action="store_true", help="line, scatter: logarithmic value axis")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--width", type=int, default=800)
    parser.add_argument("--height", type=int, default=460)
    parser.add_argument("--alt", default="", help="text for readers who cannot see the chart")
    options = parser.parse_args(arguments)
    if not 240 <= options.width <= 4000 or not 180 <= options.height <= 4000:
        parser.error("--width must be 240 to 4000 and --height 180 to 4000")
    if options.bins < 0 or options.bins > 200 or options.top < 0:
        parser.error("--bins must be 0 to 200 and --top not negative")
    options.y = [name.strip() for name in options.y.split(",") if name.strip()]
    lines = []
    for line in options.hline:
        value, _, words = line.partition(":")
        parsed = number(value)
        if parsed is None or isinstance(parsed, str):
            parser.error(f"--hline {line!r}: expected VALUE or VALUE:TEXT")
        lines.append((parsed, words.strip() or value.strip()))
    options.hline = lines
    return options


def _page(options, svg, table):
    header, rows = table
    cell = lambda value: "" if value is None else f"{value:,.6g}" if isinstance(value, float) else str(value)  # noqa: E731
    head = "".join(f'<th scope="col">{html.escape(str(name))}</th>' for name in header)
    body = "\n".join("<tr>" + "".join(f"<td>{html.escape(cell(value))}</td>" for value in row) + "</tr>" for row in rows[:500])
    title = html.escape(options.title or "Chart")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>body{{margin:2rem auto;max-width:{options.width}px;padding:0 1rem;font-family:system-ui,sans-serif;color:#1f2328}}
svg{{max-width:100%;height:auto}}table{{border-collapse:collapse;font-size:.9rem}}th,td{{padding:.25rem .75rem;border-bottom:1px solid #d8dee4;text-align:right}}
th:first-child,td:first-child{{text-align:left}}</style></head>
<body><figure style="margin:0">{svg}</figure>
<details><summary>Data</summary><table><thead><tr>{head}</tr></thead><tbody>
{body}
</tbody></table></details></body></html>
"""


if __name__ == "__main__":
    sys.exit(main())
