// frontend.h: the state that all APIs of the server share: the catalogue as each io thread sees it, readiness, the dialect.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/version.h"
#include "runtime/net/loop.h"
#include "runtime/serving/apis/inference.h"
#include "runtime/serving/host/shared_memory.h"
#include "runtime/serving/repository/repository.h"
#include "runtime/serving/settings/dialect.h"

namespace serin::serving {

/// Name of the server, which Triton's own clients check.
inline std::string_view name_of_server(Dialect dialect) { return dialect == Dialect::kTriton ? "triton" : kName; }

class Frontend {
 public:
  struct Options {
    Dialect dialect = Dialect::kSerin;
    bool shared_memory = false;    ///< clients may name regions of this machine's shared memory for tensors
    bool cors = false;             ///< pages of any origin may call TensorFlow Serving's API
    bool strict_readiness = true;  ///< false: ready after all loads have ended, even if some failed
    std::string name;              ///< name that the server reports; empty: the name of the dialect
    protocol::RequestLimits limits = {};
    std::chrono::milliseconds longest_http{0};  ///< deadline for HTTP requests without an earlier one; 0: none
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
        readers_(loops.size(), Published<Catalogue>::Reader(models.catalogue())) {
    inferences_.reserve(loops.size());
    for (size_t i = 0; i < loops.size(); ++i) inferences_.emplace_back(loops, dialect);
  }
  Frontend(net::Loops& io_threads, Repository& models, Host& common) : Frontend(io_threads, models, common, Options()) {}

  /// Pending calls to the repository get no more answers, so that their callers may be destroyed.
  ~Frontend() {
    repository.stop();
    loops.finish_aside();  // reads requests with members of this object
    for (size_t i = 0; i < loops.size(); ++i) loops.post_and_wait(i, [] {});
  }

  /// The catalogue that this io thread saw last; valid until its next call.
  const Catalogue& catalogue() { return *readers_[loops.here()->index()].get(); }
  /// The object pool of this io thread.
  InferencePool& inferences() { return inferences_[loops.here()->index()]; }
  /// Sets readiness: false until everything is loaded, and again when the server is about to end. Other requests are always answered.
  void set_ready(bool ready) {
    if (ready) was_ready_ = loaded(*repository.catalogue().get()).has_value();
    ready_ = ready;
  }
  /// kUnavailable, with the reason, if only another process can serve the configured models.
  Status live() { return catalogue().live(host.devices); }
  /// kUnavailable, with the reason. A server that could load nothing is not ready; in Triton's dialect, neither is one that failed to load
  /// something. Once it was ready, later failures do not change that: loaded models stay, and an invalid file must not remove every replica
  /// at once.
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
  std::string metrics_at;                ///< for messages; empty: nowhere. Set before the ports open
  const protocol::RequestLimits limits;  ///< for every request of every API
  const std::chrono::milliseconds longest_http;

 private:
  protocol::RequestLimits limits_of(const Options& options) const {
    protocol::RequestLimits wanted = options.limits;
    wanted.shared = takes_regions ? &shared_memory : nullptr;
    return wanted;
  }
  Status loaded(const Catalogue& now) const { return strict_readiness_ ? now.loaded(dialect == Dialect::kTriton) : Status(); }

  const bool strict_readiness_;
  std::vector<Published<Catalogue>::Reader> readers_;  // one for each io thread, like the next
  std::vector<InferencePool> inferences_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> was_ready_{false};
};

/// Extensions of the Open Inference Protocol that the server's metadata lists.
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
