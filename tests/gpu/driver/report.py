"""The table that a run ends with."""

from results import FAILED, PASSED, SKIPPED


def counted(cases):
    """What the ledger keeps of a unit's cases."""
    skipped = [case.detail for case in cases if case.status == SKIPPED]
    return {
        "passed": sum(case.status == PASSED for case in cases),
        "failed": {case.name: case.detail for case in cases if case.status == FAILED},
        "skipped": {reason: skipped.count(reason) for reason in sorted(set(skipped))},
    }


def added(counts):
    """The sum of dictionaries of numbers."""
    total = {}
    for each in counts:
        for name, number in each.items():
            total[name] = total.get(name, 0) + number
    return total


def row(part, units, ledger):
    done = [ledger.known[unit] for unit in units if ledger.has(unit)]
    skipped = added(record["skipped"] for record in done)
    remarks = [f"{number} {name}" for name, number in added(record["notes"] for record in done).items()] + list(skipped)
    if len(done) < len(units):
        remarks.append(f"**{len(units) - len(done)} of {len(units)} units are still to be run**")
    counts = [sum(record["passed"] for record in done), sum(len(record["failed"]) for record in done), sum(skipped.values())]
    dates = sorted({record["date"] for record in done})
    span = " to ".join(dict.fromkeys([*dates[:1], *dates[-1:]]))
    return [part, *map(str, counts), f"{sum(record['seconds'] for record in done):.0f}", span, "; ".join(remarks)]


def table(chosen, ledger):
    """Markdown, a line for each part. chosen: {part: its units}."""
    rows = [["part", "passed", "failed", "skipped", "seconds", "date", ""], ["---"] * 7]
    rows += [row(part, units, ledger) for part, units in chosen.items()]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)
