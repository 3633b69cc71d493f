"""Servers whose control groups have just the memory that `serin plan` states: bench/plan --limits, see bench/plan_limits.py --help."""

import argparse
import contextlib
import datetime
import http.client
import json
import pathlib
import statistics
import subprocess
import sys

import numpy as np

import plan_server
import table
import work

sys.path.insert(0, str(work.ROOT / "tests/e2e/support"))
import control_group  # noqa: E402

MB = 1e6
EPILOGUE = """
Each server has one instance and one client. Its limit is the plan of the whole process, so that the kernel kills a server that takes more. The limit of a
control group also counts the cache of files that it read; the kernel takes that back first. "held" is the most that the process held (VmHWM), and "spare" what
it left of the plan. It is negative where the plan was too low: pages of the program that another process has read before are held, and not counted by the group.
Needs to make control groups, as root can.
"""


def flags():
    parser = argparse.ArgumentParser("bench/plan --limits", description="Serves models within the memory that was planned.", epilog=EPILOGUE, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="names of tests/models.txt, or files; nothing: every model of the list that is not quantised")
    parser.add_argument("--batch", type=int, default=4, help="rows of a request (4)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    return parser.parse_args()


def of_list(name):
    """(file, inputs, sizes of open dimensions other than that of rows), for a number of rows."""
    one = work.Work(name, name, "", work.sizes_of(work.listing.entries()[name]))
    return lambda rows: (one.path, dict(np.load(work.inputs_file(one, rows), allow_pickle=True)), one.sizes)


def of_file(path):
    """Inputs of a file that nobody described: its first open dimension is that of rows, words are below 1,000, and masks let all pass."""
    tensors = work.listing.reference(path, optimised=False).get_inputs()
    others = sorted({dim for tensor in tensors for dim in tensor.shape[1:] if isinstance(dim, str)})
    sizes = {dim: work.LENGTHS.get(dim, 64) for dim in others}
    numbers = np.random.default_rng(0)

    def value(tensor, rows):
        first, *rest = tensor.shape
        shape = [first if isinstance(first, int) else rows, *(sizes.get(dim, dim) for dim in rest)]
        kind = work.listing.DTYPES[tensor.type]
        if np.issubdtype(kind, np.floating):
            return numbers.standard_normal(shape).astype(kind)
        return np.ones(shape, kind) if "mask" in tensor.name else numbers.integers(0, 1000, shape).astype(kind)

    return lambda rows: (path, {tensor.name: value(tensor, rows) for tensor in tensors}, tuple(sizes.items()))


def serve(name, rows):
    """A row of the table, as JSON."""
    path, inputs, sizes = (of_list(name) if name in work.listing.entries() else of_file(pathlib.Path(name).resolve()))(rows)
    row = {"model": pathlib.Path(name).stem, "batch": rows, "sizes": dict(sizes)}
    with contextlib.ExitStack() as stack:

        def limited(planned):
            row["plan"] = planned
            row["group"] = stack.enter_context(control_group.limited(planned))
            return row["group"].run_by

        try:
            served = plan_server.plan_and_serve(path, inputs, sizes, rows, limited)
            row |= {"held": served.most, "spare": 1 - served.most / served.planned}
        except (RuntimeError, OSError, KeyError, http.client.HTTPException, subprocess.CalledProcessError) as why:
            row["error"] = str(why) or type(why).__name__
        group = row.pop("group", None)
        row["killed"] = bool(group and group.killed())
    return row


def cells(row):
    title = row["model"] + "".join(f" {dim} {size}" for dim, size in row["sizes"].items())
    held = [f"{row['held'] / MB:.1f}", f"{100 * row['spare']:.1f} %"] if "held" in row else ["-", "-"]
    return [title, f"{row['plan'] / MB:.1f}" if "plan" in row else "-", *held, "killed" if row["killed"] else row.get("error", "served")[:80]]


def main():
    options = flags()
    names = options.models or [name for name, entry in work.listing.entries().items() if not entry.quantised]
    print(f"{datetime.date.today()}, {table.machine()}; batches of {options.batch}, one thread, 20 requests; MB.\n", flush=True)
    table.Table.line(["model", "limit = plan", "held", "spare", "outcome"])
    table.Table.line(["---"] * 5)
    rows = []
    for name in names:
        rows.append(serve(name, options.batch))
        table.Table.line(cells(rows[-1]))
    spare = [row["spare"] for row in rows if "spare" in row]
    print(f"\nServed: {len(spare)} of {len(rows)}; killed: {sum(row['killed'] for row in rows)}; "
          f"held more than planned: {sum(value < 0 for value in spare)}.")
    if spare:
        print(f"Spare: {100 * statistics.mean(spare):.1f} % on average, {100 * max(spare):.1f} % at most.")
    if options.json:
        options.json.write_text(json.dumps({"machine": table.machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
