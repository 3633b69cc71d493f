// conformance_test: the ONNX backend tests, one gtest each.
//
//   conformance_test                          all; what expected.txt lists must fail, everything else must pass
//   conformance_test --filter resize          those whose name contains it, listed or not
//   conformance_test --report FILE            writes "set/name <tab> error" for every failing one
//   conformance_test --update                 makes expected.txt say what fails now (new lines get the error as their reason)
//   conformance_test --here --filter NAME     without a process of its own, for a debugger
//   conformance_test --suite DIR --expected FILE   the suite's folders and the list, where they do not lie where this was built (tests/gpu/run)
//
// The last lines are the totals, one for each set. With SERIN_CUDA_PLUGIN in the environment a device runs them, and nothing else does: then what expected.txt
// lists may pass.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>

#include "tests/conformance/runner.h"
#include "tests/gpu/plugin_under_test.h"

namespace serin::conformance {
namespace {

struct Session {
  Runner runner;
  LeftOut left_out;
  bool here = false, strict = true;           // strict: the list decides
  std::map<std::string, std::string> failed;  // name -> error
  std::map<std::string, int> ran, passed;     // by set
  std::string report;                         // lines of --report
};

class ConformanceCase : public ::testing::Test {
 public:
  ConformanceCase(Session& session, Case test) : session_(session), case_(std::move(test)) {}

  void TestBody() override {
    const auto error = session_.here ? session_.runner.run_here(case_) : session_.runner.run(case_);
    ++session_.ran[case_.set];
    session_.passed[case_.set] += !error;
    if (error) {
      session_.failed.emplace(case_.name, *error);
      session_.report += fmt::format("{}/{}\t{}\n", case_.set, case_.name, *error);
    }
    const auto listed = session_.left_out.find(case_.name);
    if (!session_.strict || listed == session_.left_out.end()) {
      EXPECT_FALSE(error) << error.value_or("");
    } else if (error) {
      GTEST_SKIP() << listed->second;
    } else if (!test::plugin_path()) {
      ADD_FAILURE() << case_.name << " passes: take it off tests/conformance/expected.txt";
    }
  }

 private:
  Session& session_;
  Case case_;
};

/// "summary: " makes tests/run show a line.
void print_totals(const Session& session) {
  std::cout << "summary: on " << session.runner.describe() << "\n";
  for (const char* set : kSets)
    if (const auto ran = session.ran.find(set); ran != session.ran.end())
      std::cout << fmt::format("summary: {:17} {:5} of {:5} pass\n", set, session.passed.at(set), ran->second);
}

struct Flags {
  std::string report, suite = SERIN_VENV, expected = SERIN_EXPECTED;
  bool update = false;
};

Flags parse_flags(int argc, char** argv, Session& session) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (flag == "--filter") GTEST_FLAG_SET(filter, "*" + value() + "*"), session.strict = false;
    if (flag == "--report") flags.report = value();
    if (flag == "--suite") flags.suite = value();
    if (flag == "--expected") flags.expected = value();
    if (flag == "--update") flags.update = true, session.strict = false;
    if (flag == "--here") session.here = true;
  }
  return flags;
}

int run(int argc, char** argv) {
  Session session;
  const Flags flags = parse_flags(argc, argv, session);
  const auto cases = find_suite(flags.suite);
  const auto left_out = read_left_out(flags.expected);
  if (!cases || !left_out) {
    std::cerr << (cases ? left_out.error().message : cases.error().message) << "\n";
    return 1;
  }
  session.left_out = *left_out;
  for (const Case& test : *cases)
    ::testing::RegisterTest(test.set.c_str(), test.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [&session, test]() -> ::testing::Test* { return new ConformanceCase(session, test); });
  const int result = RUN_ALL_TESTS();
  print_totals(session);
  if (!flags.report.empty()) std::ofstream(flags.report) << session.report;
  if (!flags.update) return result;
  if (const auto written = write_left_out(flags.expected, session.failed); !written) {
    std::cerr << written.error().message << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace serin::conformance

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return serin::conformance::run(argc, argv);
}
