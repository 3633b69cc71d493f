"""Test cases and where they are read from: junit XML, which gtest and pytest both write, or, after a crash, gtest's own output."""

import re
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
DETAIL_LINES = 80
CRASHED = re.compile(r"Sanitizer|runtime error: |died of SIG|(had died|ended) with -|worker '\w+' crashed")


@dataclass
class Case:
    part: str
    name: str
    status: str
    seconds: float = 0.0
    detail: str = ""  # why it failed, or the reason for the skip
    node: str = ""  # what its framework calls this one test, to run it alone; empty: unknown
    crashed: bool = False  # a program died of a signal, or a sanitizer found something: no load on the machine does that


@dataclass
class Outcome:
    """What came of a part."""

    cases: list
    cpu_s: float = 0.0
    notes: list = field(default_factory=list)  # lines that a test program has to say beside passed and failed
    log: Path | None = None
    seconds: float = 0.0


def from_junit(part, path: Path):
    if not path.exists():
        return []
    return [_from_element(part, e) for e in xml.parse(path).getroot().iter("testcase")]


def _from_element(part, element):
    suite = element.get("classname", "").split(".")[-1]  # pytest's has the folders before it
    name = f"{suite}.{element.get('name')}" if suite else element.get("name")
    case = Case(part, name, PASSED, float(element.get("time") or 0), node=_node(element, name))
    bad = [e for e in element if e.tag in ("failure", "error")]
    skipped = element.find("skipped")
    if bad:
        captured = [e for e in element if e.tag in ("system-out", "system-err")]
        case.status = FAILED
        text = "\n".join((e.text or e.get("message") or "").strip() for e in bad + captured)
        case.detail, case.crashed = clip(text), bool(CRASHED.search(text))
    elif skipped is not None:
        case.status = SKIPPED
        case.detail = _skip_reason(skipped)
    elif element.get("status") == "notrun":  # gtest: DISABLED_
        case.status = SKIPPED
        case.detail = "disabled in the source"
    return case


def _node(element, name):
    """gtest's name, or pytest's, which begins with the file."""
    file = element.get("file")
    if element.get("status"):  # only gtest writes one
        return name
    if not file:
        return ""
    classes = element.get("classname", "").removeprefix(file.removesuffix(".py").replace("/", ".")).split(".")
    return "::".join([file, *filter(None, classes), element.get("name")])


def _skip_reason(element):
    """gtest's message is `file:line\\nreason`, pytest's is the reason."""
    lines = [line.strip() for line in (element.get("message") or element.text or "").splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def from_gtest_log(part, text):
    """What a crashed gtest run had done until then: the tests that ended, and the one that did not."""
    cases = [Case(part, name, PASSED) for name in re.findall(r"\[       OK \] (\S+)", text)]
    cases += [Case(part, name, SKIPPED, detail="see the log") for name in re.findall(r"^\[  SKIPPED \] (\S+) \(", text, re.M)]
    failed = re.findall(r"^\[  FAILED  \] ([^\s,]+).*\(\d+ ms\)", text, re.M)
    cases += [Case(part, name, FAILED, detail=gtest_detail(text, name)) for name in failed]
    ended = {case.name for case in cases}
    begun = [name for name in re.findall(r"\[ RUN      \] (\S+)", text) if name not in ended]
    return cases, begun[-1] if begun else None


def gtest_detail(text, name):
    """The output between RUN and FAILED: the assertion and what was logged before it."""
    _, found, rest = text.partition(f"[ RUN      ] {name}\n")
    return clip(re.split(r"\[  FAILED  \] ", rest)[0].strip()) if found else ""


def clip(text):
    lines = text.splitlines()
    if len(lines) <= DETAIL_LINES:
        return text
    half = DETAIL_LINES // 2
    return "\n".join(lines[:half] + [f"... {len(lines) - 2 * half} lines ..."] + lines[-half:])
