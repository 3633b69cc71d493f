// sealed_file_test.cc: what was sealed is read back with the same key for the same purpose, and with nothing else.

#include "router/config/sealed_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "runtime/base/file.h"
#include "tests/router/store/test_folder.h"

namespace serin::router {
namespace {

using ::testing::HasSubstr;

constexpr SealingKey kKey{1, 2, 3};
const std::vector<std::string> kRecords{"first secret", "", std::string("\0\xff", 2), "last secret"};

std::string write_key(const TestFolder& folder, const std::string& text, mode_t mode = 0600) {
  const std::string path = folder.file("key");
  std::ofstream(path) << text;
  ::chmod(path.c_str(), mode);
  return path;
}

TEST(SealedFile, IsReadBackWithItsKeyForItsPurpose) {
  const TestFolder folder;
  const std::string path = folder.file("sealed");
  ASSERT_TRUE(write_sealed(path, kKey, "requests of a", kRecords));
  EXPECT_EQ(*read_sealed(path, kKey, "requests of a"), kRecords);
  EXPECT_EQ(read_sealed(path, kKey, "requests of b").error().code, Code::kCorrupt);
  EXPECT_EQ(read_sealed(path, SealingKey{1, 2, 4}, "requests of a").error().code, Code::kCorrupt);
  EXPECT_EQ(read_sealed(folder.file("missing"), kKey, "requests of a").error().code, Code::kNotFound);
  ASSERT_TRUE(write_sealed(path, kKey, "requests of a", {}));
  EXPECT_TRUE(read_sealed(path, kKey, "requests of a")->empty());
}

TEST(SealedFile, ShowsNothingAndBelongsToItsOwner) {
  const TestFolder folder;
  const std::string path = folder.file("sealed");
  ASSERT_TRUE(write_sealed(path, kKey, "p", kRecords));
  const std::string once = *read_file(path, 1 << 20);
  EXPECT_EQ(once.find("secret"), std::string::npos);
  struct stat file{};
  ASSERT_EQ(::stat(path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
  ASSERT_TRUE(write_sealed(path, kKey, "p", kRecords));
  EXPECT_NE(*read_file(path, 1 << 20), once) << "a nonce of its own each time";
}

TEST(SealedFile, RefusesEveryChange) {
  const TestFolder folder;
  const std::string path = folder.file("sealed");
  ASSERT_TRUE(write_sealed(path, kKey, "p", kRecords));
  const std::string whole = *read_file(path, 1 << 20);
  const auto refused = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    const auto read = read_sealed(path, kKey, "p");
    return !read && read.error().code == Code::kCorrupt;
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_TRUE(refused(changed)) << "byte " << i;
    EXPECT_TRUE(refused(whole.substr(0, i))) << "cut at " << i;
  }
  EXPECT_TRUE(refused(whole + "x"));
}

TEST(SealedFile, ReadsAKeyThatOnlyItsOwnerMayRead) {
  const TestFolder folder;
  const std::string good = "AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
  EXPECT_EQ(*read_sealing_key(write_key(folder, good + "\n")), kKey);
  EXPECT_THAT(read_sealing_key(write_key(folder, good, 0644)).error().message, HasSubstr("chmod 600"));
  for (const char* bad : {"", "short", "AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "!QIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}) {
    const auto key = read_sealing_key(write_key(folder, bad));
    ASSERT_FALSE(key) << bad;
    EXPECT_THAT(key.error().message, HasSubstr("base64 of 32 random bytes"));
    EXPECT_TRUE(*bad == '\0' || key.error().message.find(bad) == std::string::npos);
  }
}

}  // namespace
}  // namespace serin::router
