// inference.h: one inference from a checked request to its answer: queued, waited for, ended by whichever comes first of the batch's answer (posted
// where a compute thread has it), the deadline and the caller's hanging up. What protocol it came by is the caller's business.
//
//   auto inference = Inference::start(loops, {.version = version, .request = std::move(decoded)}, [](const Finished& finished) { ... send ... });
//   responder.on_cancel([weak = std::weak_ptr(inference)] { if (auto held = weak.lock()) held->cancel(); });
//
// Lives on the io thread that started it, where `done` is called, once, possibly before start() returns.
#pragma once

#include <functional>
#include <memory>

#include "runtime/net/loop.h"
#include "runtime/serving/version.h"

namespace serin::serving {

struct Finished {
  const Version& version;
  const std::vector<protocol::WantedOutput>& wanted;
  Answer answer;  ///< with a batch of its own where it was refused before it rode in one
};

/// The outputs as they were asked for: `wanted[i]` is the i-th. Holds what classes are made of.
class OutputViews {
 public:
  explicit OutputViews(const Finished& finished);  ///< requires that it went well
  const TensorView& operator[](size_t i) const { return views_[i]; }

 private:
  std::vector<TensorView> views_;
  std::vector<std::vector<std::string>> texts_;
};

/// The same with their names.
std::vector<protocol::NamedTensor> named_outputs(const Finished& finished, const OutputViews& views);
/// Puts those where they were asked for that are to lie in shared memory. The client's fault where there is no room.
Status write_shared(const std::vector<protocol::NamedTensor>& outputs);

class Inference : public std::enable_shared_from_this<Inference> {
 public:
  struct Call {
    std::shared_ptr<Version> version;
    protocol::InferRequest request;
    Clock::time_point arrived;
    Clock::time_point deadline = Clock::time_point::max();  ///< that of the request's own parameters counts, too
    bool shadow = false;
  };
  using Done = std::function<void(Finished)>;

  static std::shared_ptr<Inference> start(net::Loops& loops, Call call, Done done);
  /// The client hung up. `done` is told, as for every end, so that it can be counted.
  void cancel() { fail({Code::kCancelled, "the client hung up"}); }

 private:
  Inference(Call call, Done done);
  void submit(net::Loops& loops);
  void finish(Answer answer);
  void fail(Error error);

  std::shared_ptr<Version> version_;  // null once ended
  protocol::InferRequest request_;
  const Clock::time_point arrived_;
  Clock::time_point deadline_;
  const bool shadow_;
  Done done_;
  std::weak_ptr<Job> job_;  // the job holds the inference through `done`, never the other way round
  int64_t rows_ = 1;
  net::Timer timer_;
  bool queued_ = false;
  bool submitted_ = false;  // submit() is over: an answer that comes out of it waits until then
};

}  // namespace serin::serving
