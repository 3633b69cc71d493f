// inference.h: one inference from a checked request to its answer, independent of the protocol.
//
// The request is queued. The first of three events ends it: the batch's answer (posted by a compute thread), the deadline, or the client's
// disconnection.
//
//   auto inference = Inference::start(frontend.inferences(), {.version = version, .request = std::move(decoded)},
//                                     [](const Finished& finished) { ... send ... });
//   responder.on_cancel([weak = std::weak_ptr(inference)] { if (auto held = weak.lock()) held->cancel(); });
//
// It lives on the io thread that started it, where `done` is called once, possibly before start() returns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/recycler.h"
#include "runtime/base/unique_function.h"
#include "runtime/net/deadline.h"
#include "runtime/net/loop.h"
#include "runtime/serving/host/shared_memory.h"
#include "runtime/serving/repository/version.h"
#include "runtime/serving/settings/dialect.h"

namespace serin::serving {

struct Finished {
  const Version& version;
  const std::vector<protocol::WantedOutput>& wanted;
  std::string_view id;  ///< the client's id for the request
  Answer answer;        ///< with its own batch tag if the request was refused before it joined a batch
  bool taken = true;    ///< false: it was refused on arrival
};

/// A copy that stays valid longer.
class KeptFinished {
 public:
  explicit KeptFinished(const Finished& finished);
  /// Call it once.
  Finished take() { return {*version_, wanted_, id_, std::move(answer_), taken_}; }
  /// Call it if take() is not called.
  void drop() { answer_ = Answer(); }

 private:
  std::shared_ptr<const Version> version_;
  std::vector<protocol::WantedOutput> wanted_;
  std::string id_;
  Answer answer_;
  bool taken_;
};

/// Rough ratio of the cost of a byte of JSON to that of a byte of a binary tensor, for reading or writing.
inline constexpr size_t kBinaryIsFaster = 16;
/// Upper bound for the cost of reading tensors in shared memory, in bytes of JSON: the size of the largest region, if the message names
/// one.
size_t work_in_regions(const SharedMemory& regions, std::string_view message);
/// Cost of writing the outputs, in bytes of JSON; `binary`: none of them is JSON.
size_t work_to_encode(const Finished& finished, bool binary = false);

/// The requested outputs: view i is `wanted[i]`. It also stores the texts of classes.
class OutputViews {
 public:
  explicit OutputViews(const Finished& finished);  ///< requires success
  const TensorView& operator[](size_t i) const { return views_[i]; }

 private:
  protocol::Few<TensorView> views_;
  std::vector<std::vector<std::string>> texts_;
};

/// The same with their names.
protocol::Few<protocol::NamedTensor> named_outputs(const Finished& finished, const OutputViews& views);
/// Writes the outputs that belong in shared memory. Too little room there is the client's error.
Status write_shared(std::span<const protocol::NamedTensor> outputs);

class InferencePool;

class Inference {
 public:
  struct Call {
    std::shared_ptr<Version> version;
    protocol::InferRequest request;
    Clock::time_point arrived;
    Clock::time_point deadline = Clock::time_point::max();  ///< the request's own timeout also applies
    bool shadow = false;
    Trace::Door door = Trace::Door::kNone;
    TfApi api = TfApi::kInfer;
    Clock::time_point received;  ///< when its first bytes came
  };
  using Done = UniqueFunction<void(const Finished&)>;

  static std::shared_ptr<Inference> start(InferencePool& pool, Call call, Done done);
  /// The client hung up. `done` is still called, as for every end, so that the request is counted.
  void cancel() { fail({Code::kCancelled, "the client hung up"}); }

  Inference() : alarm_(this, [](void* self) { static_cast<Inference*>(self)->expire(); }) {}
  /// For Recycler.
  void clear();

 private:
  static void submit(const std::shared_ptr<Inference>& self);
  void finish(Answer answer);
  void fail(Error error);
  void expire() { fail({Code::kDeadlineExceeded, "the deadline passed before the answer was ready"}); }

  InferencePool* pool_ = nullptr;
  std::shared_ptr<Version> version_;  // null once ended
  protocol::InferRequest request_;
  Clock::time_point arrived_, deadline_;
  bool shadow_ = false;
  Trace trace_;
  TfApi api_ = TfApi::kInfer;
  Done done_;
  std::weak_ptr<Job> job_;  // the job owns the inference through `done`, never the reverse
  Answer answer_;           // on its way from the compute thread
  int64_t rows_ = 1;
  net::Deadline alarm_;
  bool queued_ = false;
  bool in_order_ = false;   // for a sequence: the previous answer may still be on its way to this thread
  bool submitted_ = false;  // submit() has returned: an earlier answer waits until then
};

/// The object pool of one io thread: requests reuse the memory of earlier ones, so that a steady stream allocates nothing.
class InferencePool {
 public:
  InferencePool(net::Loops& io_threads, Dialect dialect) : loops_(io_threads), dialect_(dialect) {}

  /// Returns a request to decode into.
  protocol::InferRequest take_request();

 private:
  friend class Inference;
  void give(protocol::InferRequest over);

  net::Loops& loops_;
  const Dialect dialect_;
  Recycler<Inference> inferences_;
  Recycler<Job> jobs_;
  std::vector<protocol::InferRequest> requests_;
};

}  // namespace serin::serving
