"""runtime/serving/apis/dialects/REFERENCE.md against the command lines of other servers, and against the paths and methods that are served."""

import re

import pytest
from reference_pages import between, page, rows, section, serin, source, sources, strings, words

PAGE = "runtime/serving/apis/dialects/REFERENCE.md"
DIALECTS = ["tritonserver", "tensorflow_model_server", "ovms", "kserve", "paddle"]


def flags_of_help(*command):
    return set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", serin(*command, "--help"), re.M)) - {"--help", "--version"}


def documented(dialect):
    text = section(page(PAGE), f"Flags of {dialect}")
    flags = {word for row in rows(text) for word in words(row[0])} if dialect != "ovms" else \
        {word for row in rows(text.split("In the file of `--config_path`:")[0]) for word in words(row[0])}
    for block in re.findall(r"```\n(.*?)```", text, re.S):
        flags |= set(block.split())
    return flags


def read_by(dialect):
    """Flags in the source of a command line; those of Serin's that it mentions are not among them."""
    stem = {"tensorflow_model_server": "tfserving", "tritonserver": "triton", "paddle": "kserve"}.get(dialect, dialect)
    text = source(f"serve_as_{stem}.cc")
    if stem == "kserve":
        text = text[text.index("void add_paddle"):] if dialect == "paddle" else text[:text.index("void add_paddle")]
    flags = {flag for flag in strings(text) if re.fullmatch(r"--[\w-]+", flag)}
    if dialect == "tritonserver":
        flags |= {f"--trace-{setting}" for setting in strings(between(text, "const std::string setting : {", "}"))}
        flags.discard("--trace-")
    return flags


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_flag_of_the_source_is_documented(dialect):
    # Two ports of Triton's are Serin's own flags, which the page names for their readers.
    own = {"--grpc-port", "--metrics-port"} if dialect == "tritonserver" else set()
    assert documented(dialect) - own == read_by(dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_program_takes_each_documented_flag(dialect):
    taken = flags_of_help("serve", "--as", dialect)
    shared = documented("kserve") if dialect == "paddle" else set()
    assert documented(dialect) | shared <= taken
    assert taken - documented(dialect) - shared <= flags_of_help("serve")


def test_each_dialect_is_in_the_tables():
    names = strings(between(source("dialect.h"), "kDialectNames = {", "};"))
    assert names[1:] == ["tritonserver", "tensorflow_model_server", "ovms", "paddle", "kserve"]
    for heading in ("APIs and the command lines of other servers", "Defaults"):
        told = {word for row in rows(section(page(PAGE), heading)) for word in words(row[0])}
        assert set(names[1:]) <= told, heading


def test_each_path_is_documented():
    known = {path for _, path in re.findall(r'\{"(GET|POST)", "([^"]+)"\}', source("nearest_path.cc"))}
    assert known
    text = " ".join(word for row in rows(section(page(PAGE), "Endpoints")) for word in words(row[0]))
    told = set()
    for path in re.findall(r"/[^\s`]*|\.\.\./\w+", text.replace("[/versions/<version>]", "")):
        told.add(path)
    verbs = set(re.findall(r":(\w+)", text))
    for path in known:
        path = path.replace("/versions/<version>", "")
        plain, _, verb = path.partition(":")
        if verb:
            assert verb in verbs and any(each.startswith(plain + ":") for each in told), path
        elif path.startswith("/v2/systemsharedmemory"):
            assert "/v2/systemsharedmemory/..." in told
        elif path.endswith("/unload"):
            assert ".../unload" in text
        else:
            assert path in told, path


def test_each_grpc_method_is_documented():
    methods = set()
    for _, text in sources("*grpc*.cc"):
        methods |= set(re.findall(r'"/(?:[\w.]+)/(\w+)"', text)) | set(re.findall(r'(?:service|kService|predictions|models) \+ "(\w+)"', text))
        methods |= set(re.findall(r'\("(\w+)",', text)) & {"RepositoryModelLoad", "RepositoryModelUnload"}
    assert len(methods) > 20
    told = set(re.findall(r"\w+", section(page(PAGE), "Endpoints")))
    of_cuda = {method for method in methods if method.startswith("CudaSharedMemory")}
    assert methods - of_cuda - {"ServerReflectionInfo"} <= told
