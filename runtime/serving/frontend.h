// frontend.h: what all doors of the server share: the catalogue as each io thread sees it, readiness, what an error is called outside.
#pragma once

#include <atomic>
#include <vector>

#include "runtime/net/loop.h"
#include "runtime/serving/repository.h"

namespace serin::serving {

class Frontend {
 public:
  Frontend(net::Loops& io_threads, const Repository& repository, Host& common)
      : loops(io_threads), host(common), readers_(loops.size(), Published<Catalogue>::Reader(repository.catalogue())) {}

  /// As this io thread saw it last; valid until it looks again.
  const Catalogue& catalogue() { return *readers_[net::this_loop()].get(); }
  /// What readiness says: not until everything was loaded, and not any more once the end is near. Everything else is answered all the time.
  void set_ready(bool ready) { ready_ = ready; }
  bool ready() { return ready_ && catalogue().usable(); }

  net::Loops& loops;
  Host& host;

 private:
  std::vector<Published<Catalogue>::Reader> readers_;  // one for each io thread
  std::atomic<bool> ready_{false};
};

/// The status of HTTP for an error of ours.
constexpr int http_status(Code code) {
  switch (code) {
    case Code::kNotFound: return 404;
    case Code::kTooLarge: return 413;
    case Code::kOverloaded: return 429;
    case Code::kCancelled: return 499;
    case Code::kUnavailable: return 503;
    case Code::kDeadlineExceeded: return 504;
    case Code::kInternal:
    case Code::kCorrupt:
    case Code::kIo: return 500;
    default: return 400;
  }
}

/// Extensions of the Open Inference Protocol that this server speaks, as its metadata lists them.
inline constexpr std::string_view kExtensions[] = {"classification", "binary_tensor_data", "model_repository", "statistics"};

}  // namespace serin::serving
