"""Each check refuses what it is there to refuse, and accepts the same repository without it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHECKS = Path(__file__).resolve().parent

README = "Try `./deploy/quickstart`, test with `./tests/run`.\n"
SCRIPT = "#!/bin/bash\nset -e\necho fine\n"
GOOD = {
    "README.md": README,
    "deploy/quickstart": SCRIPT,
    "tests/run": SCRIPT,
    "kernels/tensor.h": "#pragma once\n",
    "kernels/op.h": '#pragma once\n\n#include "kernels/tensor.h"\n\nint run();\n',
    "kernels/op.cc": '#include "kernels/op.h"\n\nint run() { return 1; }\n',
    "runtime/base/result.h": "#pragma once\n",
    "runtime/net/server.h": '#pragma once\n\n#include "runtime/base/result.h"\n',
    "tests/check.py": "import sys\n\nprint(sys.argv)\n",
    "tests/covers.txt": "# kernels\nkernels/{op,tensor}  tests/check.py\nruntime/*/*  tests/check.py\n",
}


class Sample:
    """A small git repository with one source that is compiled."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run(["git", "init", "-q", folder], check=True)
        self.write(GOOD)

    def write(self, contents):
        for name, text in contents.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if text.startswith("#!"):
                path.chmod(0o755)

    def build(self):
        """What cmake leaves behind for kernels/op.cc."""
        for name in ".clang-tidy", ".clang-format":
            (self.folder / name).write_text((CHECKS.parents[1] / name).read_text())
        build = self.folder / "build/checks/commands"
        build.mkdir(parents=True)
        (self.folder / ".gitignore").write_text("/build/\n")
        source = self.folder / "kernels/op.cc"
        command = f"g++ -std=c++20 -I{self.folder} -O2 -o op.o -c {source}"
        (build / "compile_commands.json").write_text(json.dumps([{"directory": str(build), "command": command, "file": str(source)}]))

    def commit(self):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", "add", "."], cwd=self.folder, check=True)
        subprocess.run(["git", *identity, "commit", "-qm", "x"], cwd=self.folder, check=True)

    def check(self, name, *arguments, long=""):
        environment = {**os.environ, "SERIN_LONG": long}
        return subprocess.run([CHECKS / name, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def sample(tmp_path):
    made = Sample(tmp_path)
    made.build()
    return made


@pytest.mark.parametrize("name", ["covered", "dashboard", "format", "headers", "layering", "lint", "locks", "prose", "python", "shell", "text"])
def test_accepts_a_good_repository(sample, name):
    result = sample.check(name)
    assert result.returncode == 0, result.stdout + result.stderr


REFUSED = [
    ("covered", "kernels/alone.cc", "int alone();\n", "kernels/alone: no test has"),
    ("covered", "tests/covers.txt", "kernels/* tests/check.py\n", "runtime/net/server: no test"),
    ("covered", "tests/covers.txt", "kernels/* tests/check.py\nruntime/* tests/check.py\n", "tests/covers.txt:2: runtime/* matches no source"),
    ("covered", "tests/covers.txt", "kernels/* tests/check.py\nkernels/op.cc tests/check.py\n", "tests/covers.txt:2: kernels/op.cc matches only sources whose"),
    ("covered", "tests/covers.txt", "kernels/* tests/check.py tests/gone.py\n", "tests/covers.txt:1: tests/gone.py is no file of tests/"),
    ("covered", "tests/covers.txt", "kernels/* kernels/op.cc\n", "tests/covers.txt:1: kernels/op.cc is no file of tests/"),
    ("covered", "tests/covers.txt", "kernels/*  # tests/check.py\n", "tests/covers.txt:1: kernels/* names no test"),
    ("format", "kernels/op.cc", "int  run( ) {return 1;}\n", "kernels/op.cc:1"),
    ("headers", "kernels/op.h", "#pragma once\nstd::string name();\n", "kernels/op.h:2"),
    ("headers", "kernels/alone.h", "#pragma once\nSize size();\n", "kernels/alone.h:2"),
    ("layering", "kernels/op.h", '#include "runtime/base/result.h"\n', "kernels/op.h:1: includes runtime/base/result.h"),
    ("layering", "runtime/graph/a.cc", "\n#include <kernels/op.h>\n", "runtime/graph/a.cc:2"),
    ("layering", "kernels/tensor.h", '#include "kernels/op.h"\n', "kernels/tensor.h:1"),
    ("layering", "runtime/net/a.cc", '#include "runtime/graph/graph.h"\n', "runtime/net may include only itself"),
    ("layering", "runtime/protocol/a.cc", '#include "runtime/net/http.h"\n', "runtime/protocol may include only"),
    ("layering", "router/rollout/a.cc", '#include "router/store/store.h"\n', "router/rollout may include only"),
    ("layering", "router/rollout/a.cc", '#include "runtime/net/http.h"\n', "router/rollout may include only"),
    ("layering", "router/proxy/a.cc", '#include "router/admin/api.h"\n', "router/proxy may include only"),
    ("layering", "router/control/controller.cc", '#include "router/proxy/proxy.h"\n', "router/control may include only"),
    ("layering", "router/proxy/a.cc", '#include "runtime/net/http2/h2_session.h"\n', "no part of the face of runtime/net"),
    ("layering", "runtime/net/http2/a.cc", '#include "runtime/net/server/responder.h"\n', "runtime/net/http2 may include only"),
    ("layering", "router/admin/a.cc", '#include "runtime/engine/engine.h"\n', "router/admin may include only"),
    ("layering", "kernels/ref/a.cc", '#include "tests/support.h"\n', "includes tests/support.h"),
    ("layering", "kernels/a.cc", '#include "op.h"\n', "from the root of the repository"),
    ("layering", "runtime/new/a.cc", '#include "runtime/base/result.h"\n', "not in the table"),
    ("lint", "kernels/op.cc", "int BadName() { return 1; }\n", "readability-identifier-naming"),
    ("lint", "kernels/op.cc", "bool f(double x) {\n  if (x > 1);\n  return true;\n}\n", "bugprone-suspicious-semicolon"),
    ("locks", "kernels/op.cc", "#include <mutex>\n\nstatic std::mutex one;  // std::mutex\n", "kernels/op.cc:3: std::mutex: the classes of"),
    ("locks", "runtime/base/a.h", "int f() {\n  const std::lock_guard lock(one);\n}\n", "runtime/base/a.h:2: std::lock_guard: the classes"),
    ("locks", "router/a.cc", "struct A {\n  mutable Mutex mutex;\n  int a;  // SERIN_GUARDED_BY is missing\n};\n", "router/a.cc:2: mutex guards nothing"),
    ("prose", "runtime/README.md", "# A\n\n" + "word " * 14 + "\n" + "word " * 15 + "\n", "runtime/README.md:3: a sentence of 29 words"),
    ("prose", "runtime/README.md", "Short. " + "word " * 28 + "`a b` [a link](x.md) .\n", "a sentence of 30 words"),
    ("prose", "runtime/README.md", "- one\n- " + "word " * 29 + "\n", "runtime/README.md:2: a sentence of 29 words"),
    ("prose", "runtime/README.md", "| a |\n|---|\n| " + "x" * 161 + " |\n", "runtime/README.md:3: a table cell of 161 characters"),
    ("prose", "README.zh-CN.md", "| " + "\u5b57" * 161 + " |\n", "README.zh-CN.md:1: a table cell of 161 characters"),
    ("prose", "runtime/README.md", "One.\nWhat is **not** said is lost.\n", "runtime/README.md:2: begins with a relative clause"),
    ("prose", "runtime/README.md", "**Who gets no more** waits.\n", "begins with a relative clause"),
    ("prose", "runtime/README.md", "It ends. Whoever waits is answered.\n", "begins with a relative clause"),
    ("prose", "runtime/README.md", "Every [door](x.md) is open.\n", 'house word "door"'),
    ("prose", "runtime/README.md", "## The doors\n", "runtime/README.md:1: house word"),
    ("prose", "runtime/README.md", "Bodies that are unpacked.\n", "decompressed"),
    ("prose", "runtime/README.md", "A repository of Triton's.\n", "a noun after the possessive"),
    ("prose", "runtime/README.md", "One \u2014 two \u2014 three.\n", "a chain of dashes"),
    ("prose", "kernels/tensor.h", "#pragma once\n// tensor.h: " + "word " * 14 + "\n// " + "word " * 14 + "\n", "kernels/tensor.h:2: a sentence of 29 words"),
    ("prose", "kernels/tensor.h", "#pragma once\nint a();  ///< told to\n", "kernels/tensor.h:2: house word"),
    ("prose", "kernels/tensor.h", "#pragma once\n/* One.\n   Who calls waits. */\n", "kernels/tensor.h:3: begins"),
    ("python", "tests/check.py", "print(undefined_name)\n", "undefined name"),
    ("python", "tests/check.py", "def broken(:\n", "tests/check.py:1"),
    ("python", "deploy/tool", "#!/usr/bin/env python3\nimport os\n", "imported but unused"),
    ("shell", "deploy/quickstart", "#!/bin/bash\ncd $1\n", "SC2164"),
    ("shell", "deploy/quickstart", "#!/bin/bash\nif true; then\n", "error"),
    ("text", "kernels/op.cc", "// TO" + "DO: later\n", "kernels/op.cc:1: an open end"),
    ("text", "kernels/CMakeLists.txt", "add_compile_options(-m" + "arch=native)\n", "kernels/CMakeLists.txt:1"),
    ("text", "deploy/quickstart", "#!/bin/bash\ncat /ro" + "ot/x\n", "absolute path"),
    ("text", "runtime/README.md", "as in share" + "d/NOTES.md\n", "not in this repository"),
    ("text", "deploy/notes.md", "see https://py" + "pi.org/\n", "registry host"),
    ("text", "kernels/op.cc", "\n" * 401, "401 lines, 400"),
    ("text", "runtime/net/a.cc", "\n" * 601, "601 lines, 600"),
    ("text", "tests/run", "#!/bin/bash\n" + "\n" * 600, "601 lines, 600"),
    ("text", "README.md", "Just run it.\n", "does not name ./deploy/quickstart"),
]


@pytest.mark.parametrize("name, path, text, message", REFUSED, ids=[f"{i}-{r[0]}" for i, r in enumerate(REFUSED)])
def test_refuses(sample, name, path, text, message):
    sample.write({path: text})
    result = sample.check(name)
    assert result.returncode == 1, result.stdout + result.stderr
    assert message in result.stdout + result.stderr


def test_layering_accepts_what_the_table_allows(sample):
    sample.write({
        "router/proxy/a.cc": '#include "kernels/tensor.h"\n#include "router/config/config.h"\n#include "runtime/net/server.h"\n#include <vector>\n',
        "runtime/cli/a.cc": '#include "kernels/op.h"\n#include "router/admin/api.h"\n#include "runtime/serving/server.h"\n',
    })
    assert sample.check("layering").returncode == 0


def test_covered_prints_the_tests_of_sources(sample):
    sample.write({
        "runtime/net/io/loop.cc": "",
        "runtime/net/io/socket.h": "",
        "runtime/base/number.h": "",
        "kernels/cuda/op.cu": "",
        "tests/covers.txt": "kernels/*/op tests/check.py\nkernels/tensor tests/check.py\nruntime/net/io/* tests/check.py\n",
        "tests/kernels/op_test.cc": "",
        "tests/runtime/net/loop_test.cc": '#include "runtime/base/result.h"\n#include "tests/runtime/net/peer.h"\n',
        "tests/runtime/net/peer.h": '#include "runtime/base/number.h"\n#include "runtime/net/server.h"\n',
        "tests/runtime/net/server_limits_test.cc": '#include "runtime/net/io/socket.h"\n#include "runtime/net/server.h"\n',
    })
    assert sample.check("covered", "kernels/op.cc", "kernels/cuda", "kernels/tensor").stdout.splitlines() == [
        "kernels/op: tests/kernels/op_test.cc", "kernels/cuda/op: tests/check.py", "kernels/tensor: tests/check.py"]
    assert sample.check("covered", "runtime").stdout.splitlines() == [
        "runtime/base/number: tests/runtime/net/loop_test.cc",
        "runtime/base/result: tests/runtime/net/loop_test.cc",
        "runtime/net/io/loop: tests/runtime/net/loop_test.cc",
        "runtime/net/io/socket: tests/runtime/net/server_limits_test.cc tests/check.py",
        "runtime/net/server: tests/runtime/net/server_limits_test.cc"]
    assert "tests/covers.txt:3: runtime/net/io/* matches only" in sample.check("covered").stdout
    assert "tests/run: no source of kernels" in sample.check("covered", "tests/run").stderr


def test_layering_refuses_a_circle(sample):
    sample.write({
        "runtime/net/server.cc": '#include "runtime/net/server.h"\n#include "runtime/net/io/socket.h"\n',
        "runtime/net/io/socket.h": '#pragma once\n#include "runtime/net/io/loop.h"\n',
        "runtime/net/io/loop.cc": '#include "runtime/net/server.h"\n',
    })
    result = sample.check("layering")
    assert result.returncode == 1
    assert "includes go in a circle: runtime/net/loop > runtime/net/server > runtime/net/socket > runtime/net/loop" in result.stdout


def test_layering_takes_a_source_with_its_header(sample):
    sample.write({
        "kernels/cuda/a.h": "#pragma once\n",
        "kernels/cuda/a.cu": '#include "kernels/cuda/a.h"\n#include "kernels/cuda/b.h"\n',
        "kernels/cuda/b.h": '#pragma once\n#include "kernels/cuda/a.h"\n',
    })
    assert "includes go in a circle: kernels/cuda/a > kernels/cuda/b > kernels/cuda/a" in sample.check("layering").stdout
    sample.write({"kernels/cuda/a.cu": '#include "kernels/cuda/a.h"\n'})
    assert sample.check("layering").returncode == 0


def test_text_accepts_an_open_end_with_an_issue(sample):
    sample.write({"kernels/op.cc": "// TO" + "DO(#12): later\n"})
    assert sample.check("text").returncode == 0


def test_text_refuses_a_command_that_is_not_executable(sample):
    (sample.folder / "tests/run").chmod(0o644)
    assert "./tests/run: is not there or not executable" in sample.check("text").stdout


def test_prose_accepts_code_tables_and_questions(sample):
    long = "word " * 40
    sample.write({
        "runtime/README.md": f"What is it? A thing, e.g. this one.\n\n    doors {long}\n\n```\nWhoever {long}\n```\n\n`{long}` "
        + "word " * 27 + "\nand ends. " + "word " * 28 + "\n\n| [" + "x" * 160 + "](" + "y" * 90 + ") |\n",
        "README.zh-CN.md": long + "\n",
        "CHANGELOG.md": long + "\n",
        "kernels/tensor.h": f'#pragma once\n//   auto x = {long}\n// One.\n\nconst char* kX = "// {long}";\n',
        "kernels/op.cc": f"// {long}\n",
    })
    result = sample.check("prose")
    assert result.returncode == 1
    assert result.stdout.splitlines() == ['runtime/README.md:9: a sentence of 30 words, 28 are the limit: "`code` word word word word word ..."']


def test_prose_looks_at_the_given_paths_only(sample):
    sample.write({"runtime/net/README.md": "A door.\n", "router/README.md": "A door.\n"})
    assert sample.check("prose").stdout.count("house word") == 2
    assert sample.check("prose", "runtime").stdout.startswith("runtime/net/README.md:1: house word")
    assert sample.check("prose", "runtime", "router/README.md").stdout.count("house word") == 2
    assert sample.check("prose", "runtime/base").returncode == 0
    assert "no such file" in sample.check("prose", "elsewhere").stderr


def test_checks_see_committed_files_and_not_ignored_ones(sample):
    sample.write({".gitignore": "/build/\n/scratch/\n", "scratch/a.md": "TO" + "DO\n", "kept/a.md": "TO" + "DO\n"})
    sample.commit()
    assert sample.check("text").stdout.count("open end") == 1


def test_format_fixes(sample):
    sample.write({"kernels/op.cc": "int  run( ) {return 1;}\n"})
    assert sample.check("format", "--fix").returncode == 0
    assert (sample.folder / "kernels/op.cc").read_text() == "int run() { return 1; }\n"
    assert sample.check("format").returncode == 0


def test_headers_checks_again_when_an_included_file_changes(sample):
    assert sample.check("headers").returncode == 0
    sample.write({"kernels/tensor.h": "#pragma once\n#error no\n"})
    assert "#error no" in sample.check("headers").stdout


def test_headers_that_a_source_includes_first_are_tried_once_they_change_and_in_long_runs(sample):
    sample.write({"kernels/op.h": "#pragma once\nSize size();\n"})
    sample.commit()
    sample.write({"README.md": README + "More.\n"})
    sample.commit()
    assert sample.check("headers").returncode == 0
    assert "kernels/op.h:2" in sample.check("headers", long="1").stdout
    sample.write({"kernels/op.h": "#pragma once\n\nSize size();\n"})
    assert "kernels/op.h:3" in sample.check("headers").stdout


def test_of_many_headers_those_that_changed_last_are_tried(sample):
    sample.commit()
    subprocess.run(["git", "branch", "-M", "main"], cwd=sample.folder, check=True)
    subprocess.run(["git", "checkout", "-q", "-b", "work"], cwd=sample.folder, check=True)
    for first, last in ("nm", "aa"), ("zz", "#error old"):
        sample.write({f"kernels/{first}{i}.h": f"#pragma once\n{last if i == 7 and first == 'zz' else ''}\n" for i in range(35)})
        sample.commit()
    assert "#error old" in sample.check("headers").stdout, "35 of the second commit come before those of the first"
    sample.write({f"kernels/aa{i}.h": "#pragma once\n" for i in range(60)})
    tried = sample.check("headers")
    assert tried.returncode == 0 and "the 60 changed last" in tried.stdout
    assert "#error old" in sample.check("headers", long="1").stdout


def test_lint_looks_again_when_an_included_file_changes(sample):
    assert sample.check("lint").returncode == 0
    sample.write({"kernels/tensor.h": "#pragma once\n\nint BadName();\n"})
    assert "readability-identifier-naming" in sample.check("lint").stdout


LEFT = """#include "kernels/op.h"

#include "kernels/mutex.h"

namespace serin {

class Left {
 public:
  int take() {
    BODY
  }

 private:
  int one() SERIN_REQUIRES(mutex_) { return left_--; }

  Mutex mutex_;
  Condition changed_;
  int left_ SERIN_GUARDED_BY(mutex_) = 0;
};

}  // namespace serin

int run() { return serin::Left().take(); }
"""
NEEDS_IT = "requires holding mutex 'mutex_'"


@pytest.mark.parametrize("body, message", [
    ("const MutexLock lock(mutex_); return one();", ""),
    ("const MutexLock lock(mutex_); changed_.wait(mutex_, [this]() SERIN_REQUIRES(mutex_) { return left_ > 0; }); return left_--;", ""),
    ("{ const MutexLock lock(mutex_); { const MutexUnlock unlocked(mutex_); } return left_--; }", ""),
    ("return left_--;", NEEDS_IT),
    ("return one();", NEEDS_IT),
    ("const MutexLock lock(mutex_); const MutexUnlock unlocked(mutex_); return left_--;", NEEDS_IT),
    ("const MutexLock lock(mutex_); changed_.wait(mutex_, [this] { return left_ > 0; }); return 1;", NEEDS_IT),
    ("changed_.wait(mutex_); return 1;", NEEDS_IT),
    ("const MutexLock lock(mutex_); const MutexLock again(mutex_); return 1;", "acquiring mutex 'mutex_' that is already held"),
    ("mutex_.lock(); return 1;", "mutex 'mutex_' is still held at the end of function"),
])
def test_locks_refuses_what_the_analysis_finds(sample, body, message):
    sample.write({"kernels/mutex.h": (CHECKS.parents[1] / "kernels/mutex.h").read_text(), "kernels/op.cc": LEFT.replace("BODY", body)})
    result = sample.check("locks")
    assert result.returncode == (1 if message else 0), result.stdout + result.stderr
    assert message in result.stdout


def test_locks_looks_at_sources_that_include_a_lock_and_again_when_it_changes(sample):
    header, source = LEFT.replace('#include "kernels/op.h"', "#pragma once").replace("BODY", "return 0;").split("int run")
    sample.write({
        "kernels/mutex.h": (CHECKS.parents[1] / "kernels/mutex.h").read_text(),
        "kernels/left.h": header,
        "kernels/op.cc": '#include "kernels/op.h"\n\n#include "kernels/left.h"\n\nint run' + source,
    })
    assert sample.check("locks").returncode == 0
    sample.write({"kernels/left.h": header.replace("return 0;", "return one();")})
    assert NEEDS_IT in sample.check("locks").stdout


def test_locks_leaves_unchanged_sources_alone_but_in_long_runs(sample):
    sample.write({"kernels/mutex.h": (CHECKS.parents[1] / "kernels/mutex.h").read_text(), "kernels/op.cc": LEFT.replace("BODY", "return one();")})
    sample.commit()
    sample.write({"README.md": README + "More.\n"})
    sample.commit()
    assert sample.check("locks").returncode == 0
    assert NEEDS_IT in sample.check("locks", long="1").stdout


def test_dashboard_refuses_a_page_that_its_sources_do_not_build_to(sample):
    page, copy = CHECKS.parents[1] / "router/dashboard", sample.folder / "router/dashboard"
    shutil.copytree(page, copy, ignore=shutil.ignore_patterns("node_modules"))
    (copy / "node_modules").symlink_to(page / "node_modules")
    assert sample.check("dashboard").returncode == 0
    style = copy / "src/style.css"
    style.write_text(style.read_text() + "main { color: red }\n")
    refused = sample.check("dashboard")
    assert refused.returncode == 1 and "router/dashboard/built/dashboard.css: is not what" in refused.stdout
    (copy / "src/format.ts").write_text("export const count = (n: number): string => n;\n")
    refused = sample.check("dashboard")
    assert refused.returncode != 0 and "src/format.ts" in refused.stdout


def test_lint_leaves_unchanged_files_alone(sample):
    sample.write({"kernels/op.cc": "int BadName() { return 1; }\n"})
    sample.commit()
    sample.write({"README.md": README + "More.\n"})
    sample.commit()
    assert sample.check("lint").returncode == 0
