"""The pages that people read first lead somewhere: each relative link, each heading behind a #, and each path in backticks is there."""

import functools
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("GUIDE.md", "REFERENCE.md", "METRICS.md", "ERRORS.md", "DEPENDENCIES.md")
FIRST = ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "deploy/kubernetes/README.md")
# What README.md must lead to: the pages of this list exist, whatever else is linked.
MUST = (
    "runtime/serving/GUIDE.md", "runtime/serving/settings/REFERENCE.md", "runtime/cli/REFERENCE.md", "runtime/serving/apis/dialects/REFERENCE.md",
    "runtime/serving/host/METRICS.md", "runtime/serving/apis/ERRORS.md", "router/GUIDE.md", "router/config/REFERENCE.md", "router/rollout/REFERENCE.md",
    "router/admin/REFERENCE.md", "router/view/METRICS.md", "deploy/kubernetes/README.md", "deploy/DEPENDENCIES.md", "CONTRIBUTING.md", "CHANGELOG.md",
    "SECURITY.md", "LICENSE",
)
FOLDERS = ("bench", "cmake", "deploy", "kernels", "models", "router", "runtime", "services", "tests")  # a word in backticks that begins with one of them is a path


@functools.cache
def tracked():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [pathlib.PurePosixPath(name) for name in listed.stdout.splitlines()]


def pages():
    return sorted({*FIRST, *(str(path) for path in tracked() if path.name in NAMES)})


def prose(text):
    """Without blocks of code, whose paths are the reader's own."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S)
    return re.sub(r"(?:^|\n\n)(?:    .*\n?)+", "\n", text)


def headings(text):
    """As GitHub names them in an address."""
    found = re.findall(r"^#+ (.*)$", re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).strip().replace(" ", "-") for heading in found}


def broken_links(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        if not file.exists():
            yield f"{page}: ({target}) leads nowhere"
        elif heading and file.suffix == ".md" and heading not in headings(file.read_text()):
            yield f"{page}: ({target}): there is no such heading"


def looks_like_a_path(word):
    return re.fullmatch(rf"(?:\./)?(?:{'|'.join(FOLDERS)})/[\w./*-]+", word) is not None


def exists(word):
    word = word.removeprefix("./").rstrip("/")
    if "*" in word:
        return any(path.match(word) for path in tracked())
    return (ROOT / word).exists() or any(path.stem == pathlib.PurePosixPath(word).name and str(path.parent) == str(pathlib.PurePosixPath(word).parent)
                                         for path in tracked())  # `router/store/weights_page`: a header with its source


def broken_paths(page):
    for quoted in re.findall(r"`([^`\n]+)`", prose((ROOT / page).read_text())):
        words = quoted.split()
        if not words or "<" in quoted:
            continue
        if looks_like_a_path(words[0]) and not exists(words[0]):
            yield f"{page}: `{words[0]}` is not there"


@pytest.mark.parametrize("page", pages())
def test_links_and_paths_lead_somewhere(page):
    assert (ROOT / page).is_file(), f"{page} is not there"
    assert [*broken_links(page), *broken_paths(page)] == []


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_readme_leads_to_every_guide_and_reference(page):
    linked = set(re.findall(r"\]\(([^)\s#]+)", (ROOT / page).read_text()))
    assert set(MUST) - linked == set()


def test_both_readmes_have_the_same_links_commands_and_figures():
    english, chinese = ((ROOT / page).read_text() for page in ("README.md", "README.zh-CN.md"))
    for pattern in (r"\]\(([^)\s]+)\)", r"\n    \./?([^\n#]*[^\n# ])", r"\| `([^`]+)` \| \d{4}-\d\d-\d\d", r"\d{4}-\d\d-\d\d", r"\b\d+\.\d\d\b", r"\b\d+,\d{3}\b"):
        found = [sorted(re.findall(pattern, re.sub(r"\]\(README[^)]*\)", "", text))) for text in (english, chinese)]
        assert found[0] == found[1], pattern


def test_the_readme_is_short():
    for page in ("README.md", "README.zh-CN.md"):
        assert len((ROOT / page).read_text().splitlines()) <= 150, page
