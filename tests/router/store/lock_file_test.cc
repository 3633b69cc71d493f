// The store belongs to one router; the lock ends with its owner, however it ends.

#include "router/store/lock_file.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/router/store/test_folder.h"

namespace serin::store {
namespace {

using ::testing::HasSubstr;

TEST(LockFile, S1TwoProcessesTheSecondIsToldThePidOfTheFirst) {
  const TestFolder folder;
  const std::string path = folder.file("router.db.lock");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    const auto lock = LockFile::acquire(path);
    (void)!::write(ready[1], lock ? "y" : "n", 1);
    ::pause();
  }
  char locked = 0;
  ASSERT_EQ(::read(ready[0], &locked, 1), 1);
  ASSERT_EQ(locked, 'y');

  const auto second = LockFile::acquire(path);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kAlreadyExists);
  EXPECT_THAT(second.error().message, HasSubstr("pid " + std::to_string(owner)));

  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  EXPECT_TRUE(LockFile::acquire(path)) << "a lock ends with its process";
}

TEST(LockFile, NoSuchFolder) {
  const TestFolder folder;
  const auto lock = LockFile::acquire(folder.file("absent/router.db.lock"));
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace serin::store
