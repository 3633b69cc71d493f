// route.cc: `serin route`: one Generation after the other, until the end.
//
// SIGHUP      router.yaml is read again. A bad one is refused whole; a good one is a new generation on the same sockets, and the old one drains.
//             The same happens when a link in its path leads to another file, because nobody sends signals when a mounted ConfigMap changes.
// --take-over the same across processes (handover.h): the old one hands its sockets and the store over, drains and ends.
// SIGTERM     readiness turns 503 at once, on both ports; requests go on being routed for the drain time (or until a second signal), what is then
//             under way is answered, exit 0. Rollouts go on where they are at the next start.

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "router/app/generation.h"
#include "router/app/handover.h"
#include "router/config/read_config.h"
#include "runtime/base/log.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/validators.h"

namespace serin::cli {
namespace {

using Clock = std::chrono::steady_clock;
using router::Generation;
using router::HandoverPeer;
using router::HandoverPoint;
using router::ListeningSockets;

struct RouteOptions {
  std::string config, store;
  double drain_seconds = 5;
  std::string ready_file, log_format = "text", log_level = "info";
  bool check = false;      ///< read the configuration, report what is wrong, end
  bool take_over = false;  ///< take over from the router that runs on the same store, if there is one
};

constexpr std::chrono::seconds kLongestDrain{30}, kPeerTime{60};
constexpr int kLookMs = 1000;  // for another file behind router.yaml, or for the store
constexpr std::chrono::seconds kTryAgain{30};

int usage(const Error& error) {
  std::fprintf(stderr, "serin route: %s\n", error.message.c_str());
  return kUsage;
}

Error needs_restart(std::string_view key) {
  return {Code::kFailedPrecondition, fmt::format("'{}' cannot change while the router runs: restart it", key)};
}

/// The file that a path leads to. Empty: none at present.
std::string file_behind(const std::string& path) {
  std::error_code none;
  return std::filesystem::canonical(path, none).string();
}

/// What runs must still be there: a reload never ends a rollout by the way.
Status check_rollouts(const std::vector<router::ServiceStatus>& running, const router::RouterConfig& before,
                      const router::RouterConfig& next) {
  for (const router::ServiceStatus& now : running) {
    const auto found = std::ranges::find(next.services, now.service, &router::ServiceConfig::name);
    const bool under_way = now.rollout && !rollout::is_over(now.rollout->state.phase);
    if (found == next.services.end()) {
      if (!under_way) continue;
      return Error{Code::kFailedPrecondition, fmt::format("service '{}' was removed, but its rollout '{}' is in progress: end it first",
                                                          now.service, now.rollout->state.id)};
    }
    const auto missing = [&](const std::string& version) { return router::version_index(*found, version) == router::Split::kNoCanary; };
    if (missing(now.stable))
      return Error{Code::kFailedPrecondition,
                   fmt::format("service '{}' no longer has version '{}', which is stable", now.service, now.stable)};
    const auto same = std::ranges::find(before.services, now.service, &router::ServiceConfig::name);
    if (under_way && same != before.services.end() && same->http_route != found->http_route)
      return Error{Code::kFailedPrecondition,
                   fmt::format("'http_route' of service '{}' changes, but its rollout '{}' is in progress: end it first", now.service,
                               now.rollout->state.id)};
    if (under_way && found->split)
      return Error{Code::kFailedPrecondition,
                   fmt::format("service '{}' has a fixed split, but its rollout '{}' is in progress: end it first", now.service,
                               now.rollout->state.id)};
    if (under_way && missing(now.rollout->state.canary))
      return Error{Code::kFailedPrecondition,
                   fmt::format("service '{}' no longer has version '{}', the canary of rollout '{}': end it first", now.service,
                               now.rollout->state.canary, now.rollout->state.id)};
  }
  return {};
}

class Route {
 public:
  Route(const RouteOptions& options, std::string file) : options_(options), file_(std::move(file)) {}
  ~Route() {
    if (draining_.joinable()) draining_.join();
  }
  int run(const router::RouterConfig& config);

 private:
  Result<ListeningSockets> take_over(const std::string& store);
  void serve_until_ended();
  void reload(bool again = false);
  bool leads_elsewhere() const;
  void refuse(const Error& error);
  bool hand_over(HandoverPeer& successor);
  void recover();
  void replace(std::unique_ptr<Generation> next);
  void count_reloads();
  void end();

  const RouteOptions& options_;
  std::string file_;  // behind options_.config, as it was read
  // Of what was refused and may be taken later, because it names another mounted file that came after it, or because a rollout ends.
  Clock::time_point try_again_ = Clock::time_point::max();
  std::string refused_for_;
  std::unique_ptr<router::RouterLoops> loops_;
  std::unique_ptr<Generation> running_;
  std::thread draining_;  // the generation before
  std::unique_ptr<HandoverPeer> predecessor_;
  Result<HandoverPoint> point_ = Error{};
  bool without_store_ = false;       // handed over to a successor that failed, and not got back yet
  router::LearnedServices learned_;  // while nobody works with the store
  uint64_t applied_ = 0, refused_ = 0;
  std::shared_ptr<metrics::Counter> applied_counter_, refused_counter_;
};

int Route::run(const router::RouterConfig& config) {
  if (!options_.take_over) remove_stale_ready_file(options_.ready_file);  // that of a predecessor holds until it is over
  // NOLINTNEXTLINE(modernize-make-unique): an aggregate of members that do not move
  loops_.reset(new router::RouterLoops{{}, {}, net::Loops(static_cast<size_t>(config.io_threads)), net::Loops(1)});
  auto inherited = options_.take_over ? take_over(config.store) : router::sockets_of_systemd();
  if (!inherited) return usage(inherited.error());
  auto generation = Generation::start(config, *loops_, *std::move(inherited));
  if (!generation) return usage(generation.error());
  running_ = *std::move(generation);
  count_reloads();
  point_ = HandoverPoint::open(config.store + ".handover");
  if (!point_) log::warning("{}", point_.error().message);
  if (auto written = write_ready_file(options_.ready_file, {.http = running_->data_port(), .admin = running_->admin_port()}); !written)
    return usage(written.error());
  if (predecessor_) predecessor_->send("ready");
  predecessor_.reset();
  log::info("routing at {}; admin API and metrics at {}", running_->data_url(), running_->admin_url());
  serve_until_ended();
  return kYes;
}

/// Nobody there is nobody to take over from: then this is an ordinary start.
Result<ListeningSockets> Route::take_over(const std::string& store) {
  predecessor_ = HandoverPeer::connect(store + ".handover");
  if (!predecessor_) return router::sockets_of_systemd();
  SERIN_TRY(ListeningSockets sockets, predecessor_->await_sockets(kPeerTime));
  if (predecessor_->send("store") && predecessor_->await("store", kPeerTime)) return sockets;
  return Error{Code::kUnavailable, fmt::format("the router that runs on {} does not hand it over", store)};
}

void Route::serve_until_ended() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  const router::Descriptor signalled(::signalfd(-1, &signals, SFD_CLOEXEC));
  for (;;) {
    pollfd waits[2] = {{.fd = signalled.get(), .events = POLLIN, .revents = 0},
                       {.fd = point_ ? point_->descriptor() : -1, .events = POLLIN, .revents = 0}};
    (void)::poll(waits, 2, kLookMs);
    if (without_store_) recover();
    if (waits[0].revents) {
      signalfd_siginfo received{};
      if (::read(signalled.get(), &received, sizeof received) != sizeof received) continue;
      if (received.ssi_signo != SIGHUP) return end();
      reload();
    } else if (waits[1].revents) {
      const auto successor = point_->accept();
      if (successor && !without_store_ && hand_over(*successor)) return;
    } else if (leads_elsewhere()) {
      reload();
    } else if (Clock::now() >= try_again_) {
      reload(/*again=*/true);
    }
  }
}

/// A link changes in one step, so what it leads to is whole. A file that is written in place may not be, and waits for SIGHUP.
bool Route::leads_elsewhere() const {
  const std::string file = file_behind(options_.config);
  return !file.empty() && file != file_;
}

/// Listens where `next` wants to and the old sockets do not. Before rollouts are handed over: a file that is refused must leave no trace in their history.
Status bind_new(const router::RouterConfig& next, ListeningSockets& sockets) {
  const auto bind = [](const char* key, const router::Listen& listen, router::Descriptor& socket) -> Status {
    if (router::is_bound_to(socket, listen.address, listen.port)) return {};
    auto made = router::listen_at(listen.address, listen.port);
    if (!made) return made.error().in(key);
    socket = *std::move(made);
    return {};
  };
  SERIN_CHECK(bind("admin", next.admin.listen, sockets.admin));
  return bind("listen", next.listen, sockets.data);
}

/// `again`: what was refused before. The same refusal is then no news.
void Route::reload(bool again) {
  if (!again) refused_for_.clear();
  file_ = file_behind(options_.config);
  auto next = router::load_config(options_.config, options_.store);
  if (!next) return refuse(next.error());
  if (next->store != running_->config().store) return refuse(needs_restart("store"));
  if (next->io_threads != running_->config().io_threads) return refuse(needs_restart("io_threads"));
  if (auto kept = check_rollouts(running_->controller().status(), running_->config(), *next); !kept) return refuse(kept.error());
  metrics::Registry unused;
  if (auto access = router::Access::open(next->admin, unused); !access) return refuse(access.error().in("admin"));
  running_->hand_endpoints_to(*next);
  ListeningSockets sockets = running_->sockets();
  if (auto bound = bind_new(*next, sockets); !bound) return refuse(bound.error());
  learned_ = running_->hand_over_store();
  auto generation = Generation::start(*next, *loops_, std::move(sockets), &learned_);
  if (!generation) {
    refuse(generation.error());
    try_again_ = Clock::time_point::max();  // to begin and end a generation every time would disturb
    return recover();
  }
  without_store_ = false;
  try_again_ = Clock::time_point::max();
  refused_for_.clear();
  ++applied_;
  replace(*std::move(generation));
  log::info("{} was read again: {} services", options_.config, next->services.size());
}

void Route::refuse(const Error& error) {
  std::error_code none;
  const bool linked = std::filesystem::is_symlink(options_.config, none);
  try_again_ = linked ? Clock::now() + kTryAgain : Clock::time_point::max();
  if (linked && std::exchange(refused_for_, error.message) == error.message) return;
  ++refused_;
  refused_counter_->add();
  log::error("{} is refused, what was read before stays in force: {}", options_.config, error.message);
}

/// True: the successor routes, and this process has nothing left to do.
bool Route::hand_over(HandoverPeer& successor) {
  if (!successor.send_sockets(running_->sockets()) || !successor.await("store", kPeerTime)) return false;
  log::info("a successor takes over");
  learned_ = running_->hand_over_store();
  if (successor.send("store") && successor.await("ready", kPeerTime)) {
    const bool drained = running_->drain(kLongestDrain);
    log::info("ended: a successor has taken over{}", drained ? "" : "; some requests were still in progress after 30 s");
    return true;
  }
  log::error("the successor failed: this router continues");
  recover();
  return false;
}

/// The store was handed over and nobody works with it.
void Route::recover() {
  router::RouterConfig config = running_->config();
  running_->hand_endpoints_to(config);
  auto generation = Generation::start(config, *loops_, running_->sockets(), &learned_);
  without_store_ = !generation;
  if (generation) return replace(*std::move(generation));
  log::error("requests are routed as before, but nothing can be decided: {}", generation.error().message);
}

void Route::replace(std::unique_ptr<Generation> next) {
  if (draining_.joinable()) draining_.join();  // two at a time are enough
  draining_ = std::thread([old = std::exchange(running_, std::move(next))] { (void)old->drain(kLongestDrain); });
  count_reloads();
}

void Route::count_reloads() {
  const auto counter = [this](const char* result, uint64_t value) {
    auto series = running_->registry().counter("serin_route_reloads_total", "Times that router.yaml was read again, since the start.",
                                               {{"result", result}});
    series->add(value);
    return series;
  };
  applied_counter_ = counter("applied", applied_);
  refused_counter_ = counter("refused", refused_);
}

void Route::end() {
  remove_own_ready_file(options_.ready_file);
  running_->stop_being_ready();
  log::info("ending: no longer ready; requests are routed for another {} s", options_.drain_seconds);
  wait_for_end_signal(options_.drain_seconds);
  const bool drained = running_->drain(kLongestDrain);
  log::info("ended{}", drained ? "" : ": some requests were still in progress after 30 s");
}

int run_route(const RouteOptions& options) {
  if (auto status = configure_log(options.log_format, options.log_level); !status) return usage(status.error());
  std::string file = file_behind(options.config);
  const auto config = router::load_config(options.config, options.store);
  if (!config) return usage(config.error());
  metrics::Registry unused;
  if (const auto access = router::Access::open(config->admin, unused); !access) return usage(access.error().in("admin"));
  if (options.check) {
    std::printf("%s: %zu services, no problems found\n", options.config.c_str(), config->services.size());
    return kYes;
  }
  block_end_signals();
  block_signal(SIGHUP);
  raise_descriptor_limit();
  return Route(options, std::move(file)).run(*config);
}

}  // namespace

void add_route(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("route", "Split traffic between model versions, judge every answer, roll back automatically");
  auto options = std::make_shared<RouteOptions>();
  command->add_option("--config", options->config, "router.yaml (router/config/REFERENCE.md lists its keys)")->required();
  command->add_option("--store", options->store, "where to keep rollouts, in the place of `store`: the path of a file, or kubernetes");
  command->add_flag("--take-over", options->take_over,
                    "take over sockets and store from the router that runs on the same store, if there is one");
  command->add_flag("--check", options->check, "read the configuration, print its faults and exit");
  command->add_option("--drain-seconds", options->drain_seconds, "seconds for which to continue routing after SIGTERM")
      ->capture_default_str()
      ->check(between(0.0, 3600.0));
  command->add_option("--ready-file", options->ready_file, "file for pid and ports, written when the router is ready");
  command->add_option("--log-format", options->log_format, "text or json")->capture_default_str();
  command->add_option("--log-level", options->log_level, "debug, info, warning, error or off")->capture_default_str();
  command->callback([options, &exit_code] { exit_code = run_route(*options); });
}

}  // namespace serin::cli
