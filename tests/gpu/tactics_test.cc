// What was measured once is not measured again, in this process or the next, however this one ends; a file that is of no use costs the measuring, not the
// start; and measuring stands in nobody's way who asks for what is known.

#include "kernels/cuda/tactics.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "kernels/cuda/build_id.h"

namespace serin::kernels::cuda {
namespace {

class Remembers : public testing::Test {
 protected:
  ~Remembers() override { std::filesystem::remove_all(above_); }

  /// Chooses among three ways, of which the second is the fastest and the last does not work.
  int choose(Tactics& tactics, const std::string& key = "matmul 1 2 3") {
    return tactics.choose(key, 3, [&](int way) -> std::optional<double> {
      ++measured_;
      return way == 2 ? std::nullopt : std::optional(way == 1 ? 0.5 : 0.7);
    });
  }
  std::vector<std::filesystem::path> files() const {
    return {std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()};
  }
  /// The one file of this scope, rewritten.
  template <class F>
  void edit(const std::string& scope, F change) {
    {
      Tactics tactics(folder_, scope);
      choose(tactics);
    }
    ASSERT_EQ(files().size(), 1u);
    std::string text;
    std::getline(std::ifstream(files()[0]), text, '\0');
    change(text);
    std::ofstream(files()[0]) << text;
    measured_ = 0;
  }

  const std::string above_ = testing::TempDir() + "tactics." + std::to_string(::getpid()), folder_ = above_ + "/below";
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
    Tactics tactics(folder_, "a device");
    EXPECT_EQ(choose(tactics), 1);
  }
  Tactics again(folder_, "a device");
  EXPECT_EQ(choose(again), 1);
  EXPECT_EQ(measured_, 3);
  EXPECT_EQ(choose(again, "another shape"), 1);
  EXPECT_EQ(again.measured(), 1u);
}

TEST_F(Remembers, WhatAKilledProcessMeasured) {
  const pid_t child = ::fork();
  if (child == 0) {
    Tactics tactics(folder_, "a device");
    choose(tactics);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  Tactics tactics(folder_, "a device");
  EXPECT_EQ(choose(tactics), 1);
  EXPECT_EQ(measured_, 0);
}

TEST_F(Remembers, WhatOthersAppendMeanwhile) {
  Tactics one(folder_, "a device"), other(folder_, "a device");
  choose(one, "first");
  choose(other, "second");
  choose(one, "third");
  measured_ = 0;
  Tactics again(folder_, "a device");
  for (const char* const key : {"first", "second", "third"}) EXPECT_EQ(choose(again, key), 1);
  EXPECT_EQ(measured_, 0);
  EXPECT_EQ(files().size(), 1u) << "something was left beside it";
}

/// A canary is loaded while stable serves on the same device: its times are good enough for now, and no longer.
TEST_F(Remembers, WhatWasMeasuredBesideRunsUntilTheDeviceIsIdle) {
  Traffic traffic;
  {
    const Traffic::Wait run(traffic, Traffic::kRun);
    Tactics tactics(folder_, "a device", nullptr, &traffic);
    choose(tactics);
    EXPECT_EQ(choose(tactics), 1);
    EXPECT_EQ(measured_, 3) << "measured again by the same process";
    Tactics other(folder_, "a device", nullptr, &traffic);
    EXPECT_EQ(choose(other), 1);
    EXPECT_EQ(measured_, 3) << "measured again on a device that is still busy";
  }
  for (int start = 0; start < 2; ++start) {
    Tactics idle(folder_, "a device", nullptr, &traffic);
    EXPECT_EQ(choose(idle), 1);
    EXPECT_EQ(measured_, 6) << "start " << start;
  }
}

TEST_F(Remembers, ThatARunCameBetween) {
  Traffic traffic;
  {
    Tactics tactics(folder_, "a device", nullptr, &traffic);
    tactics.choose("matmul 1 2 3", 1, [&](int) -> std::optional<double> {
      const Traffic::Wait run(traffic, Traffic::kRun);
      return 0.5;
    });
  }
  Tactics again(folder_, "a device", nullptr, &traffic);
  choose(again);
  EXPECT_EQ(measured_, 3);
}

TEST_F(Remembers, EachDeviceAndBuildInAFileOfItsOwn) {
  for (const char* const scope : {"a device", "another device"}) {
    Tactics tactics(folder_, scope);
    choose(tactics);
  }
  EXPECT_EQ(measured_, 6) << "taken from another device";
  Tactics first(folder_, "a device");
  choose(first);
  EXPECT_EQ(measured_, 6) << "overwritten by another device";
  EXPECT_EQ(files().size(), 2u);
  EXPECT_EQ(build_id().size(), 40u) << build_id();
  EXPECT_EQ(build_id().find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST_F(Remembers, NothingOfABrokenLine) {
  edit("a device", [](std::string& text) {
    text = text.substr(0, text.find('\n')) +
           "\n\nx y z\n-4 0.1 idle matmul 1 2 3\n9 0.1\n2 0.1 asleep matmul 1 2 3\n7 0.1 idle matmul 1 2 3\n";
  });
  Tactics tactics(folder_, "a device");
  EXPECT_EQ(choose(tactics), 1) << "there are only three ways";
  EXPECT_EQ(measured_, 3);
}

TEST_F(Remembers, WhatComesAfterATornLine) {
  edit("a device", [](std::string& text) { text += "0 0.1 idle matmul 1"; });
  {
    Tactics tactics(folder_, "a device");
    EXPECT_EQ(choose(tactics, "matmul 1"), 1) << "half a line was taken for one";
  }
  Tactics tactics(folder_, "a device");
  EXPECT_EQ(choose(tactics, "matmul 1"), 1);
  EXPECT_EQ(measured_, 3) << "its line was lost behind the torn one";
}

TEST_F(Remembers, InPlaceOfAFileOfAnotherFormat) {
  edit("a device", [](std::string& text) { text = "serin tactics 1: a device\n2 0.1 matmul 1 2 3\n"; });
  for (const int measured : {3, 3}) {
    Tactics tactics(folder_, "a device");
    EXPECT_EQ(choose(tactics), 1);
    EXPECT_EQ(measured_, measured);
  }
}

TEST_F(Remembers, NothingWhereItCannotWrite) {
  std::string note;
  Tactics tactics("/proc/serin", "a device", &note);
  EXPECT_NE(note.find("/proc/serin cannot be written"), std::string::npos) << note;
  EXPECT_EQ(choose(tactics), 1);
}

TEST_F(Remembers, NotWhatIsToBeForgotten) {
  Tactics tactics(folder_, "a device");
  choose(tactics);
  tactics.forget("matmul 1 2 3");
  EXPECT_EQ(tactics.choose("matmul 1 2 3", 3, [](int way) { return way == 0 ? std::optional(0.1) : std::nullopt; }), 0);
  Tactics again(folder_, "a device");
  EXPECT_EQ(choose(again), 0) << "the later line holds";
}

/// What `times` says of each way, where negative ones do not work; the ways that were tried, and what was chosen at last.
std::vector<int> tried(const std::vector<double>& times, const SearchLimits& limits) {
  Tactics tactics("", "a device");
  std::vector<int> ways;
  const auto measure = [&](int way) {
    ways.push_back(way);
    const double time = times[static_cast<size_t>(way)];
    return time < 0 ? std::nullopt : std::optional(time);
  };
  ways.push_back(tactics.choose("key", static_cast<int>(times.size()), measure, limits));
  return ways;
}

TEST(Search, CountsOnlyWaysThatWork) {
  EXPECT_EQ(tried({-1, -1, -1, -1, 3, -1, 2, 1}, {.measured = 2}), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 6}));
}

TEST(Search, EndsWhereNothingGetsFaster) {
  EXPECT_EQ(tried({3, 4, 2, 5, -1, 5, 1}, {.in_vain = 2}), (std::vector<int>{0, 1, 2, 3, 4, 5, 2}));
}

TEST(Search, EndsInTimeButNotWithoutAWay) {
  EXPECT_EQ(tried({-1, -1, 3, 1}, {.time = std::chrono::milliseconds(0)}), (std::vector<int>{0, 1, 2, 2}));
}

/// One thread measures a kernel that runs through a library, whose lock another thread holds while it asks for what is known: as loading a model does beside
/// one that runs.
TEST(Search, LeavesTheWayFreeForWhatIsKnown) {
  Tactics tactics("", "a device");
  const auto at_once = [](int) { return std::optional(1.0); };
  tactics.choose("known", 1, at_once);
  std::promise<void> measuring;
  std::promise<bool> answered;
  std::future<bool> answer = answered.get_future();
  bool waited_in_vain = false;
  std::thread planning([&] {
    tactics.choose("unknown", 1, [&](int) {
      measuring.set_value();
      waited_in_vain = answer.wait_for(std::chrono::seconds(10)) != std::future_status::ready;
      return std::optional(1.0);
    });
  });
  measuring.get_future().wait();
  EXPECT_EQ(tactics.choose("known", 1, at_once), 0);
  answered.set_value(true);
  planning.join();
  EXPECT_FALSE(waited_in_vain) << "each waits for the other";
}

/// Two threads plan the same: each kernel that is measured takes the library's lock, which nobody holds while waiting for a turn to measure.
TEST(Search, OfTwoThreadsMeasuresOnce) {
  Tactics tactics("", "a device");
  std::mutex library;
  int measured = 0;
  const auto plan = [&] {
    for (int key = 0; key < 100; ++key) {
      tactics.choose(std::to_string(key), 2, [&](int way) {
        const std::lock_guard lock(library);
        ++measured;
        return std::optional<double>(way);
      });
      const std::lock_guard run(library);
    }
  };
  std::thread other(plan);
  plan();
  other.join();
  EXPECT_EQ(measured, 200);
}

}  // namespace
}  // namespace serin::kernels::cuda
