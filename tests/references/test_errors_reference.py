"""runtime/serving/apis/ERRORS.md against the tables of statuses and the refusals in the code."""

import re

from reference_pages import ROOT, between, page, rows, section, source, words

PAGE = "runtime/serving/apis/ERRORS.md"
OF_CLIENTS = {"status_line"}  # what Serin says of the answers of servers


def names_of_codes():
    """{kNotFound: not_found}"""
    return dict(re.findall(r'case Code::(k\w+): return "(\w+)";', source("result.cc")))


def http_statuses():
    """{not_found: 404}"""
    names, found, waiting = names_of_codes(), {}, []
    body = between(source("http_answers.cc"), "int http_status(Code code) {", "\n}\n")
    for code, status in re.findall(r"case Code::(k\w+):|return (\d+);", body):
        if code:
            waiting.append(code)
        else:
            found |= {names[each]: int(status) for each in waiting}
            waiting, rest = [], int(status)
    return {name: found.get(name, rest) for name in names.values()}


def grpc_statuses():
    """{404: NOT_FOUND}"""
    words_of = {"k" + name.title().replace("_", ""): name for name in re.findall(r'\{"([A-Z_]+)", \d+\}', source("grpc.cc"))}
    found, waiting = {}, []
    for status, word in re.findall(r"case (\d+):|return GrpcStatus::(k\w+);", between(source("grpc.cc"), "grpc_status_of(int http_status) {", "\n}\n")):
        if status:
            waiting.append(int(status))
        else:
            found |= dict.fromkeys(waiting, words_of[word])
            waiting = []
    return found | {500: "INTERNAL"}


def test_codes_with_their_statuses():
    statuses, told = http_statuses(), rows(section(page(PAGE), "Codes"))
    assert {words(row[0])[0]: int(row[1]) for row in told} == statuses
    of_grpc = grpc_statuses()
    for row in told:
        code, = words(row[0])
        expected = "FAILED_PRECONDITION" if code == "failed_precondition" else of_grpc[statuses[code]]
        assert words(row[2]) == [expected], code
        assert row[3] and row[4], code


def refusals():
    """{reason: statuses} of the servers' readers of HTTP."""
    found = {}
    for path in [*(ROOT / "runtime/net").rglob("*.cc"), *(ROOT / "runtime/net").rglob("*.h")]:
        text = re.sub(r"//.*", "", path.read_text())
        for status, other, reason in re.findall(r'(?:refuse\(|[{ ])\{?(?:\w+ \? )?(\d{3})(?: : (\d{3}))?, "([a-z_0-9]+)"', text):
            found.setdefault(reason, set()).update({int(each) for each in (status, other) if each})
    return found


def test_reasons_of_malformed_requests():
    told = {words(row[0])[0]: {int(status) for status in row[1].split(", ")} for row in rows(section(page(PAGE), "Malformed HTTP requests"))}
    expected = {reason: statuses for reason, statuses in refusals().items() if reason not in OF_CLIENTS}
    assert len(expected) > 25
    assert told == expected


def test_statuses_as_tritonserver():
    body = between(source("http_answers.cc"), "void use_triton_status(", "\n}\n")
    names, expected, ordinary = names_of_codes(), set(), http_statuses()
    for status, choice in re.findall(r"case (\d+): response\.status = ([^;]+);", body):
        named = re.findall(r"is\(Code::(k\w+)\) \? (\d+)", choice)
        expected |= {(names[code], int(to)) for code, to in named}
    told = {words(row[0])[0]: row for row in rows(section(page(PAGE), "Differences under --as")) if words(row[0]) and words(row[0])[0] in ordinary}
    assert expected <= {(code, int(row[2])) for code, row in told.items()}
    assert all(int(row[1]) == ordinary[code] for code, row in told.items())
    assert [int(told[code][2]) for code in ("too_large", "overloaded", "deadline_exceeded")] == [400, 503, 503]


def test_headers():
    used = set()
    for room in ("serving", "net"):
        for path in (ROOT / "runtime" / room).rglob("*.cc"):
            used |= set(re.findall(r'(?:set|set_header|add)\("(x-serin-[a-z]+)"', path.read_text()))
    assert used
    assert used <= {word for row in rows(page(PAGE)[:page(PAGE).index("## Codes")]) for word in words(row[0])}
