#include "runtime/registry/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/file.h"
#include "runtime/base/temporary_folder.h"

namespace serin::registry {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

Change change(const char* version) { return {"2026-11-29T12:00:00Z", "ci", "add", version, ""}; }

Extended extended(std::string text, const std::string& last, const char* version) {
  return extend_history("h", std::move(text), last, {change(version)}).value();
}

/// Reads the text as a file.
Result<std::vector<Change>> read(const std::string& text, const std::string& last) {
  const auto folder = TemporaryFolder::make("history").value();
  const std::string path = folder.path() + "/history.jsonl";
  EXPECT_TRUE(write_file_atomically(path, text));
  return read_history(path, last);
}

const auto version_is = [](const char* version) { return Field(&Change::version, version); };

TEST(History, TheRecordIsTheChainThatEndsAtTheIndex) {
  const Extended first = extended("", "", "1");
  // Two writers have read the same index; the line of each stays, and the index names one of them.
  const Extended one = extended(first.text, first.last, "2"), other = extended(one.text, first.last, "3");
  EXPECT_THAT(read(other.text, one.last).value(), ElementsAre(version_is("1"), version_is("2")));
  EXPECT_THAT(read(other.text, other.last).value(), ElementsAre(version_is("1"), version_is("3")));
  const Extended again = extended(other.text, one.last, "4");
  EXPECT_THAT(read(again.text, again.last).value(), ElementsAre(version_is("1"), version_is("2"), version_is("4")));
}

TEST(History, SeveralChangesAreOneChain) {
  const auto made = extend_history("h", "", "", {change("1"), change("2")}).value();
  EXPECT_THAT(read(made.text, made.last).value(), ElementsAre(version_is("1"), version_is("2")));
}

TEST(History, AMissingOrChangedLineShows) {
  const Extended first = extended("", "", "1"), second = extended(first.text, first.last, "2");
  const std::string only = second.text.substr(first.text.size());
  EXPECT_THAT(read(only, second.last).error().message, HasSubstr("line 1 does not follow a line before it"));
  EXPECT_THAT(read("{}\nno\n" + second.text, second.last).error().message, HasSubstr("line 2 does not follow"));
  EXPECT_THAT(read(first.text, second.last).error().message, HasSubstr("the last line that index.json names is missing or was changed"));
  EXPECT_THAT(extend_history("h", first.text, second.last, {change("3")}).error().message, HasSubstr("h: the last line"));
}

}  // namespace
}  // namespace serin::registry
