// What was measured once is not measured again, in this process or the next; and a file that is of no use costs the measuring, not the start.

#include "kernels/cuda/tactics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace serin::kernels::cuda {
namespace {

class Remembers : public testing::Test {
 protected:
  ~Remembers() override { std::filesystem::remove(path_); }

  /// Chooses among three ways, of which the second is the fastest and the last does not work.
  int choose(Tactics& tactics, const std::string& key = "matmul 1 2 3") {
    return tactics.choose(key, 3, [&](int way) -> std::optional<double> {
      ++measured_;
      return way == 2 ? std::nullopt : std::optional(way == 1 ? 0.5 : 0.7);
    });
  }

  const std::string path_ = testing::TempDir() + "tactics." + std::to_string(::getpid());
  int measured_ = 0;
};

TEST_F(Remembers, TheFastestWay) {
  Tactics tactics("", "a device");
  EXPECT_EQ(choose(tactics), 1);
  EXPECT_EQ(choose(tactics), 1);
  EXPECT_EQ(measured_, 3);
  EXPECT_EQ(tactics.choose("none works", 2, [](int) { return std::optional<double>(); }), -1);
}

TEST_F(Remembers, AcrossProcesses) {
  {
    Tactics tactics(path_, "a device");
    EXPECT_EQ(choose(tactics), 1);
  }
  Tactics again(path_, "a device");
  EXPECT_EQ(choose(again), 1);
  EXPECT_EQ(measured_, 3);
  EXPECT_EQ(choose(again, "another shape"), 1);
  EXPECT_EQ(again.measured(), 1u);
}

TEST_F(Remembers, NothingOfAnotherDevice) {
  {
    Tactics tactics(path_, "a device");
    choose(tactics);
  }
  std::string note;
  Tactics other(path_, "another device", &note);
  EXPECT_EQ(choose(other), 1);
  EXPECT_EQ(measured_, 6);
  EXPECT_NE(note.find("measuring anew"), std::string::npos) << note;
}

TEST_F(Remembers, NothingOfABrokenFile) {
  std::ofstream(path_) << "serin tactics 1: a device\n\nx y z\n-4 0.1 matmul 1 2 3\n9 0.1\n7 0.1 matmul 1 2 3\n";
  Tactics tactics(path_, "a device");
  EXPECT_EQ(choose(tactics), 1) << "there are only three ways";
  EXPECT_EQ(measured_, 3);
}

}  // namespace
}  // namespace serin::kernels::cuda
