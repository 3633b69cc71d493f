#include "runtime/base/plugin_file.h"

#include <gmock/gmock.h>

#include "runtime/base/file.h"

namespace serin {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(PluginFile, NamesEachPlaceThatHasNone) {
  const auto entry = plugin_entry({.file = "libserin_nothing.so", .entry = "start", .missing = "nothing needs it"});
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().code, Code::kNotFound);
  EXPECT_THAT(entry.error().message, AllOf(StartsWith("nothing needs it: "), HasSubstr(program_folder() + "/libserin_nothing.so"),
                                           HasSubstr("; " + program_folder() + "/../lib/libserin_nothing.so")));
}

TEST(PluginFile, ReadsOnlyTheFileThatIsNamed) {
  const auto entry = plugin_entry({.file = "libserin_nothing.so", .entry = "start", .missing = "nothing needs it", .path = "/no/such.so"});
  ASSERT_FALSE(entry);
  EXPECT_THAT(entry.error().message, StartsWith("nothing needs it: /no/such.so: "));
  EXPECT_THAT(entry.error().message, Not(HasSubstr(program_folder())));
}

TEST(PluginFile, RefusesALibraryWithoutTheFunction) {
  struct Plugin {
  } plugin;
  const Status opened = open_plugin({.file = "libm.so.6", .entry = "serin_nothing", .missing = "", .path = "libm.so.6"}, 1, plugin);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kNotFound);
  EXPECT_THAT(opened.error().message, StartsWith("libm.so.6 is no plugin of Serin: "));
}

}  // namespace
}  // namespace serin
