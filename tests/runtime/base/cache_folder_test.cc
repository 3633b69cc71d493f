#include "runtime/base/cache_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace serin {
namespace {

/// The two variables, as they were afterwards.
class CacheFolder : public testing::Test {
 protected:
  ~CacheFolder() override {
    set("XDG_CACHE_HOME", cache_);
    set("HOME", home_);
  }
  static std::optional<std::string> value_of(const char* name) {
    const char* const value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  }
  static void set(const char* name, const std::optional<std::string>& value) {
    value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
  }

 private:
  const std::optional<std::string> cache_ = value_of("XDG_CACHE_HOME"), home_ = value_of("HOME");
};

TEST_F(CacheFolder, IsTheUsersUnlessAnotherIsAskedFor) {
  set("HOME", "/somebody");
  set("XDG_CACHE_HOME", "/cache");
  EXPECT_EQ(cache_folder(), "/cache/serin");
  EXPECT_EQ(cache_folder("here"), "here");
  EXPECT_EQ(cache_folder("none"), "");
  set("XDG_CACHE_HOME", std::nullopt);
  EXPECT_EQ(cache_folder(), "/somebody/.cache/serin");
}

TEST_F(CacheFolder, RelativePathsCountAsUnset) {
  set("HOME", "/somebody");
  set("XDG_CACHE_HOME", "cache");
  EXPECT_EQ(cache_folder(), "/somebody/.cache/serin");
  set("HOME", "a");
  EXPECT_EQ(cache_folder(), "");
}

}  // namespace
}  // namespace serin
