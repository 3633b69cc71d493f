// kill -9 at any moment: the next router goes on with the same history and never with a higher canary weight than was in force.
//
// A child drives a controller as fast as it can and tells through shared memory what its commands were answered; the parent kills it at a random moment
// and looks at what is left. Most kills fall into a transaction, because that is where the child spends its time.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "router/control/controller.h"
#include "router/store/weights_page.h"
#include "runtime/base/log.h"
#include "tests/router/router_fixture.h"

namespace serin::router {
namespace {

int kills() { return std::getenv("SERIN_LONG") != nullptr ? 1000 : 100; }

/// What anybody who asked the child was told.
struct Seen {
  std::atomic<uint64_t> state{0}, history{0};
  std::atomic<bool> opened{false};
};

/// An epoch and the state that it names: which version is stable, and whether a rollout is under way.
uint64_t named(const ServiceStatus& status) {
  const bool over = !status.rollout || rollout::is_over(status.rollout->state.phase);
  return status.epoch << 8 | static_cast<uint64_t>(std::stoi(status.stable)) << 1 | (over ? 1 : 0);
}

/// Runs until it is killed: rollouts that are started, raised, lowered, rolled back by errors, promoted by hand.
[[noreturn]] void drive(const RouterConfig& config, Seen& seen, uint64_t seed) {
  metrics::Registry metrics;
  const auto controller = open_controller(config, metrics);
  if (controller == nullptr) ::_exit(1);
  seen.opened = true;
  std::mt19937_64 random(seed);
  const auto done = [&](const Result<ServiceStatus>& status) {
    if (!status) return;
    seen.state = named(*status);
    if (const auto history = controller->history("digits", 1); history && !history->empty())
      seen.history = static_cast<uint64_t>(history->back().id);
  };
  for (uint64_t batch = 0;; ++batch) {
    const auto status = controller->status("digits");  // a promotion ends by itself: seen before it is written
    done(status);
    const std::string canary = std::to_string(1 + (std::stoi(status->stable) + static_cast<int>(random() % 2)) % 3);
    done(controller->start(spec_of(canary, {1, 5, 25, 50}), {}));
    done(controller->set_weight("digits", static_cast<uint32_t>(random() % 500'000), {}));
    switch (random() % 4) {
      case 0: done(controller->promote("digits", {})); break;
      case 1: done(controller->abort("digits", {})); break;
      case 2: done(controller->resume("digits", {})); break;
      default: send(*controller, 400, 20, rollout::Outcome::kError, batch * 1000);
    }
  }
}

TEST(Kill, S3AtAnyMomentNothingIsTornAndNoWeightRises) {
  log::configure({.level = log::Level::kOff});
  const TestFolder folder;
  const RouterConfig config = digits_config(folder.file("router.db"));
  auto* seen = new (::mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Seen;
  std::mt19937_64 random(20'240'601);
  uint64_t epoch = 0;
  int64_t last_id = 0;
  std::chrono::duration<double, std::milli> longest{0};
  for (int round = 0; round < kills(); ++round) {
    seen->opened = false;
    const pid_t child = ::fork();
    if (child == 0) drive(config, *seen, random());
    ASSERT_TRUE(eventually([&] { return seen->opened.load(); })) << "round " << round;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);

    const auto page = store::WeightsPage::read(config.store + ".weights", "digits");
    metrics::Registry metrics;
    const auto begin = std::chrono::steady_clock::now();
    const auto controller = open_controller(config, metrics);
    longest = std::max(longest, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin));
    ASSERT_NE(controller, nullptr) << "round " << round;
    EXPECT_EQ(controller->damage(), "") << "round " << round;

    // In force when the child died: the page, where its last store was whole.
    const Split after = controller->split(0);
    if (page) {
      const Split before = Split::unpack(page->word);
      EXPECT_LE(after.weight_ppm, after.canary == before.canary ? before.weight_ppm : 0) << "round " << round;
    }
    const auto status = controller->status("digits");
    EXPECT_GE(status->epoch, epoch) << "round " << round;
    const uint64_t told = seen->state.load();
    EXPECT_GE(status->epoch, told >> 8) << "round " << round;
    EXPECT_TRUE(status->epoch != told >> 8 || named(*status) == told) << "round " << round << ": the same epoch names another state";
    epoch = status->epoch;

    const auto history = *controller->history("digits", store::kHistoryLimit);
    int64_t previous = 0;
    for (const HistoryEntry& entry : history) {
      EXPECT_EQ(entry.id, previous + 1) << "no entry is lost, none comes twice";
      previous = entry.id;
    }
    EXPECT_GE(previous, static_cast<int64_t>(seen->history.load())) << "what a command was told is written";
    EXPECT_GE(previous, last_id);
    last_id = previous;
  }
  std::printf("%d kills; the slowest start after one took %.1f ms\n", kills(), longest.count());
  EXPECT_GT(last_id, kills()) << "the children did something";
}

}  // namespace
}  // namespace serin::router
