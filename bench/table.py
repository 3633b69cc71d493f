"""The form that every bench of Serin has: rows of work, metric, Serin's figure, the peers' figures and a ratio.

A ratio above 1 means that Serin is ahead of the best peer, whether more or less of the metric is better. A row that could not be measured
has no figure and says why.
"""

import argparse
import dataclasses
import json
import pathlib
import platform
import statistics


@dataclasses.dataclass
class Row:
    work: str
    metric: str
    serin: float | None
    peers: dict
    less_is_better: bool = True
    note: str = ""
    errors: dict = dataclasses.field(default_factory=dict)  # relative L2 error to fp32, by engine

    @property
    def ratio(self):
        figures = [value for value in self.peers.values() if value is not None]
        if not figures or not self.serin:  # not measured; or nothing at all, as no error: no ratio to that
            return None
        return min(figures) / self.serin if self.less_is_better else self.serin / max(figures)

    def json(self):
        more = {key: value for key, value in (("note", self.note), ("relative_l2_error", self.errors)) if value}
        return {"work": self.work, "metric": self.metric, "serin": self.serin, "peers": self.peers, "ratio": self.ratio, **more}


def figure(value):
    if value is None:
        return "-"
    return f"{value:.4f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def cells(row, peers):
    ratio = f"**{row.ratio:.2f}**" if row.ratio is not None else "-"
    errors = "error " + ", ".join(f"{name} {value:.1e}" for name, value in row.errors.items()) if row.errors else ""
    return [
        row.work,
        row.metric,
        figure(row.serin),
        *(figure(row.peers.get(name)) for name in peers),
        ratio,
        "; ".join(filter(None, [row.note, errors])),
    ]


class Table:
    """Prints rows as they come, as Markdown, and keeps them."""

    def __init__(self, peers, heading):
        self.peers, self.rows = peers, []
        print(heading + "\n")
        self.line(["work", "metric", "Serin", *peers, "ratio", ""])
        self.line(["---"] * (5 + len(peers)))

    @staticmethod
    def line(parts):
        print("| " + " | ".join(parts) + " |", flush=True)

    def add(self, row):
        self.rows.append(row)
        self.line(cells(row, self.peers))

    def geometric_mean(self, name, chosen):
        ratios = [row.ratio for row in self.rows if chosen(row) and row.ratio]
        if ratios:
            print(f"\nGeometric mean over {name}: {statistics.geometric_mean(ratios):.3f} ({len(ratios)} rows)")

    def losers(self):
        """The rows in which a peer is ahead, the worst first."""
        behind = sorted((row for row in self.rows if row.ratio and row.ratio < 1), key=lambda row: row.ratio)
        measured = sum(row.ratio is not None for row in self.rows)
        print(f"\nA peer is ahead in {len(behind)} of {measured} rows:", ", ".join(f"{row.work} {row.ratio:.2f}" for row in behind) or "none")

    def save(self, path, machine):
        save(path, machine, self.rows)


def save(path, machine, rows):
    path.write_text(json.dumps({"machine": machine, "rows": [row.json() for row in rows]}, indent=1) + "\n")


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    flags = next((line for line in lines if line.startswith("flags")), "")
    known = [name for name in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile") if f" {name}" in flags]
    return f"{cpu}, {' '.join(known)}"


def parser_for(name, description, epilogue):
    """Of a bench's command line, with the flag that all have."""
    parser = argparse.ArgumentParser(
        prog=f"bench/{name}", description=description, epilog=epilogue, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the rows there, too")
    return parser


def parse_with_parts(parser, parts):
    """The flags, and which of the bench's parts are asked for: all where none is named."""
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these: {', '.join(parts)}")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(parts):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; allowed: {', '.join(parts)}")
    options.parts = options.parts or list(parts)
    return options
