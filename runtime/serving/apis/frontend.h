// frontend.h: what all doors of the server share: the catalogue as each io thread sees it, readiness, the dialect.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/version.h"
#include "runtime/net/loop.h"
#include "runtime/serving/apis/leftovers.h"
#include "runtime/serving/host/shared_memory.h"
#include "runtime/serving/repository/repository.h"
#include "runtime/serving/settings/dialect.h"

namespace serin::serving {

/// As a server calls itself: Triton's own clients look at it.
inline std::string_view name_of_server(Dialect dialect) { return dialect == Dialect::kTriton ? "triton" : kName; }

class Frontend {
 public:
  struct Options {
    Dialect dialect = Dialect::kSerin;
    bool shared_memory = false;    ///< clients may name regions of this machine's memory that tensors lie in
    bool cors = false;             ///< pages of any origin may ask TensorFlow Serving's API
    bool strict_readiness = true;  ///< false: ready once everything was tried, whatever came of it
    std::string name;              ///< as the server calls itself; empty: as the dialect does
    protocol::RequestLimits limits = {};
    std::chrono::milliseconds longest_http{0};  ///< a deadline for requests over HTTP that name none that is earlier; 0: none
  };
  Frontend(net::Loops& io_threads, Repository& models, Host& common, const Options& options)
      : loops(io_threads),
        repository(models),
        host(common),
        dialect(options.dialect),
        takes_regions(options.shared_memory),
        cors(options.cors),
        name(options.name.empty() ? name_of_server(options.dialect) : options.name),
        limits(limits_of(options)),
        longest_http(options.longest_http),
        strict_readiness_(options.strict_readiness),
        readers_(loops.size(), Published<Catalogue>::Reader(models.catalogue())),
        leftovers_(loops.size()) {}
  Frontend(net::Loops& io_threads, Repository& models, Host& common) : Frontend(io_threads, models, common, Options()) {}

  /// Nothing that the repository was asked for is answered any more, so that what asks may go.
  ~Frontend() {
    repository.stop();
    loops.finish_aside();  // reads requests by what stands here
    for (size_t i = 0; i < loops.size(); ++i) loops.post_and_wait(i, [] {});
  }

  /// As this io thread saw it last; valid until it looks again.
  const Catalogue& catalogue() { return *readers_[net::this_loop()].get(); }
  /// Of this io thread.
  Leftovers& leftovers() { return leftovers_[net::this_loop()]; }
  /// What readiness says: not until everything was loaded, and not any more once the end is near. Everything else is answered all the time.
  void set_ready(bool ready) {
    if (ready) was_ready_ = loaded(*repository.catalogue().get()).has_value();
    ready_ = ready;
  }
  /// kUnavailable, and why, where only another process can serve what this one was given to.
  Status live() { return catalogue().live(host.devices); }
  /// kUnavailable, and why. A server that could load nothing is not ready, nor is one that stands in for Triton and could not load something. Once it was
  /// ready it stays so whatever fails to load after that: what was loaded goes on, and a bad file must not take away every replica at once.
  Status ready() {
    if (!ready_) return Error{Code::kUnavailable, "models are being loaded, or the end is near"};
    SERIN_CHECK(live());
    if (was_ready_) return {};
    SERIN_CHECK(loaded(catalogue()));
    was_ready_ = true;
    return {};
  }

  net::Loops& loops;
  Repository& repository;
  Host& host;
  const Dialect dialect;
  const bool takes_regions;  ///< clients may register shared memory
  SharedMemory shared_memory;
  const bool cors;
  const std::string name;
  std::string metrics_at;                ///< as messages say it; empty: nowhere. Set before a door is open
  const protocol::RequestLimits limits;  ///< of every request, whatever door it comes by
  const std::chrono::milliseconds longest_http;

 private:
  protocol::RequestLimits limits_of(const Options& options) const {
    protocol::RequestLimits wanted = options.limits;
    wanted.shared = takes_regions ? &shared_memory : nullptr;
    return wanted;
  }
  Status loaded(const Catalogue& now) const { return strict_readiness_ ? now.loaded(dialect == Dialect::kTriton) : Status(); }

  const bool strict_readiness_;
  std::vector<Published<Catalogue>::Reader> readers_;  // one for each io thread, as the next
  std::vector<Leftovers> leftovers_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> was_ready_{false};
};

/// Extensions of the Open Inference Protocol that this server speaks, as its metadata lists them.
inline constexpr std::string_view kExtensions[] = {"classification",
                                                   "sequence",
                                                   "binary_tensor_data",
                                                   "model_repository",
                                                   "model_repository(unload_dependents)",
                                                   "schedule_policy",
                                                   "model_configuration",
                                                   "parameters",
                                                   "statistics",
                                                   "logging",
                                                   "trace",
                                                   "system_shared_memory"};

}  // namespace serin::serving
