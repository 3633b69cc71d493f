"""deploy/DEPENDENCIES.md names what deploy/install-deps installs and what the CMake files look for, and nothing else."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "deploy/DEPENDENCIES.md").read_text()
INSTALLED = {"build_packages": ("The program", "The build"), "test_packages": ("Tests",), "bench_packages": ("Benchmarks",)}
FOUND_BY_PATH = {"RE2_LIBRARY", "NGHTTP2_LIBRARY", "ZSTD_LIBRARY", "SERIN_boost_context"}  # by find_library: Debian's packages of these have no CMake files


def cells(column, *sections):
    """The words in backticks below that column's head, in the tables of these sections; without any: of all."""
    found = []
    for section in re.split(r"^## ", PAGE, flags=re.M)[1:]:
        if sections and section.splitlines()[0] not in sections:
            continue
        for table in re.findall(r"(?:^\|.*\n)+", section, re.M):
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
            if column in rows[0]:
                found += [name for row in rows[2:] for name in re.findall(r"`([^`]+)`", row[rows[0].index(column)])]
    return found


def packages_of(variable):
    body = re.search(rf"^readonly {variable}=\(([^)]*)\)", (ROOT / "deploy/install-deps").read_text(), re.M)
    return set(body.group(1).split())


def looked_for():
    """What find_package and find_library of every CMake file name."""
    listed = subprocess.run(["git", "ls-files", "*CMakeLists.txt"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    text = "\n".join((ROOT / name).read_text() for name in listed)
    return set(re.findall(r"\bfind_package\((\w[\w-]*)", text)) | set(re.findall(r"\bfind_library\((\w+)", text))


def test_each_installed_package_is_listed_and_each_listed_one_installed():
    for variable, sections in INSTALLED.items():
        listed = cells("Debian package", *sections)
        assert sorted(listed) == sorted(set(listed)), f"{variable}: a package is listed twice"
        assert set(listed) == packages_of(variable), variable


def test_each_package_that_cmake_looks_for_is_listed_and_the_reverse():
    listed = cells("CMake")
    assert sorted(listed) == sorted(set(listed))
    assert set(listed) == looked_for()
    assert FOUND_BY_PATH <= set(listed)


def test_the_root_file_looks_for_what_the_program_needs():
    """The other tables name what only the tests, the benchmarks or a plugin look for."""
    root = set(re.findall(r"\bfind_(?:package|library)\((\w[\w-]*)", (ROOT / "CMakeLists.txt").read_text()))
    assert root <= set(cells("CMake", "The program"))


def test_each_file_of_requirements_that_the_page_names_exists():
    for name in re.findall(r"`(deploy/requirements-\w+\.txt)`", PAGE):
        assert (ROOT / name).is_file(), name
