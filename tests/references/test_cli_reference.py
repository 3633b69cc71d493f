"""runtime/cli/REFERENCE.md against what each command's --help says."""

import functools
import re

import pytest
from reference_pages import page, rows, section, serin, source, words

PAGE = "runtime/cli/REFERENCE.md"
COMMANDS = ["serve", "check", "compare", "eval", "predict", "bench", "inspect", "plan", "tune", "load", "route", "release", "up", "version"]
ACTIONS = ["start", "apply", "diff", "status", "watch", "set-weight", "pause", "resume", "promote", "abort", "undo", "retry", "outcomes", "explain", "history", "validate",
           "import", "simulate", "drill", "schema"]
REGISTRY = ["add", "list", "show", "tag", "retire", "attach", "pull", "push", "history", "verify", "gc"]
HISTORY = ["list", "show", "verify", "reproduce"]
WITHOUT_ROUTER = ["validate", "import", "simulate", "schema"]
ALL = [[command] for command in COMMANDS] + [["rollout", action] for action in ACTIONS] + [["registry", action] for action in REGISTRY] + [["history", action] for action in HISTORY]


@functools.lru_cache
def help_of(*command):
    """{flag or positional: default} of --help."""
    text = serin(*command, "--help")
    found = {}
    for line in text.splitlines():
        head = re.match(r"  (?:-\w,)?(-{0,2}[\w-]+)(?: [A-Z:]\S*?(?: in \[[^\]]*\])?(?:=(\S+))?(?= |$))?", line)
        if head and head[1] != "--help":
            found[head[1]] = head[2] or ""
    return found


def listed(text):
    """{flag: default} of the tables of a section."""
    found = {}
    for row in rows(text):
        for flag in words(row[0]):
            assert flag not in found, f"{flag} stands there twice"
            found[flag] = "".join(words(row[1]))
    return found


def documented(command):
    text = section(page(PAGE), f"`serin {' '.join(command)}`")
    if command == ["serve"]:
        text = "\n".join(section(text, part) for part in ("Models", "Ports and access", "TLS", "Compute", "Process"))
    flags = listed(text)
    if command[0] == "rollout" and command[1] not in WITHOUT_ROUTER:
        flags |= listed(section(page(PAGE), "Flags of all actions that call the router"))
        if command[1] != "drill":
            flags["--json"] = ""
    return flags


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_flags_and_their_defaults(command):
    told, said = documented(command), help_of(*command)
    assert set(told) == set(said)
    assert told == said


def subcommands(text):
    return set(re.findall(r"^  ([\w-]+) ", text[text.index("Subcommands:"):], re.M))


def test_commands():
    assert subcommands(serin("--help")) == set(COMMANDS) | {"registry", "rollout", "history"}
    table = page(PAGE)[:page(PAGE).index("## Exit codes")]
    assert {words(row[0])[0] for row in rows(table)} == set(COMMANDS) | {"registry", "rollout", "history"}


@pytest.mark.parametrize("command, actions", [("rollout", ACTIONS), ("registry", REGISTRY), ("history", HISTORY)])
def test_actions(command, actions):
    assert subcommands(serin(command, "--help")) == set(actions)
    table = section(page(PAGE), f"`serin {command}`").split("###")[0]
    assert [words(row[0])[0] for row in rows(table)] == actions


def test_exit_codes():
    codes = {int(number) for number in re.findall(r"^  k\w+ = (\d+)", source("commands.h"), re.M)}
    assert codes
    assert {int(row[0]) for row in rows(section(page(PAGE), "Exit codes"))} == codes


def test_environment():
    used = set(re.findall(r'envname\("(\w+)"\)', source("tls_flags.cc"))) | {"SERIN_TOKEN", "XDG_CACHE_HOME"}
    assert {word for row in rows(section(page(PAGE), "Environment")) for word in words(row[0])} == used
