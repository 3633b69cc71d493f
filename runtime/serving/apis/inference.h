// inference.h: one inference from a checked request to its answer: queued, waited for, ended by whichever comes first of the batch's answer (posted
// where a compute thread has it), the deadline and the caller's hanging up. What protocol it came by is the caller's business.
//
//   auto inference = Inference::start(frontend, {.version = version, .request = std::move(decoded)}, [](const Finished& finished) { ... send ... });
//   responder.on_cancel([weak = std::weak_ptr(inference)] { if (auto held = weak.lock()) held->cancel(); });
//
// Lives on the io thread that started it, where `done` is called, once, possibly before start() returns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/unique_function.h"
#include "runtime/net/deadline.h"
#include "runtime/serving/repository/version.h"

namespace serin::serving {

class Frontend;

struct Finished {
  const Version& version;
  const std::vector<protocol::WantedOutput>& wanted;
  std::string_view id;  ///< that the client gave the request
  Answer answer;        ///< with a batch of its own where it was refused before it rode in one
  bool taken = true;    ///< false: it was refused when it came
};

/// The same for who needs it longer.
class KeptFinished {
 public:
  explicit KeptFinished(const Finished& finished);
  /// Once.
  Finished take() { return {*version_, wanted_, id_, std::move(answer_), taken_}; }
  /// Nobody will.
  void drop() { answer_ = Answer(); }

 private:
  std::shared_ptr<const Version> version_;
  std::vector<protocol::WantedOutput> wanted_;
  std::string id_;
  Answer answer_;
  bool taken_;
};

/// As often as that is a byte of a tensor in binary read or written while one of JSON is, roughly.
inline constexpr size_t kBinaryIsFaster = 16;
/// What it takes to read tensors that lie in shared memory, in bytes of JSON, at the most: as much as the largest region holds, where a message names one.
size_t work_in_regions(const Frontend& frontend, std::string_view message);
/// What it takes to write the outputs, in bytes of JSON; `binary`: none of them is.
size_t work_to_encode(const Finished& finished, bool binary = false);

/// The outputs as they were asked for: `wanted[i]` is the i-th. Holds what classes are made of.
class OutputViews {
 public:
  explicit OutputViews(const Finished& finished);  ///< requires that it went well
  const TensorView& operator[](size_t i) const { return views_[i]; }

 private:
  protocol::Few<TensorView> views_;
  std::vector<std::vector<std::string>> texts_;
};

/// The same with their names.
protocol::Few<protocol::NamedTensor> named_outputs(const Finished& finished, const OutputViews& views);
/// Puts those where they were asked for that are to lie in shared memory. The client's fault where there is no room.
Status write_shared(std::span<const protocol::NamedTensor> outputs);

class Inference {
 public:
  struct Call {
    std::shared_ptr<Version> version;
    protocol::InferRequest request;
    Clock::time_point arrived;
    Clock::time_point deadline = Clock::time_point::max();  ///< that of the request's own parameters counts, too
    bool shadow = false;
    Trace::Door door = Trace::Door::kNone;
    TfApi api = TfApi::kInfer;
    Clock::time_point received;  ///< the first of it
  };
  using Done = UniqueFunction<void(const Finished&)>;

  static std::shared_ptr<Inference> start(Frontend& frontend, Call call, Done done);
  /// The client hung up. `done` is told, as for every end, so that it can be counted.
  void cancel() { fail({Code::kCancelled, "the client hung up"}); }

  Inference() : alarm_(this, [](void* self) { static_cast<Inference*>(self)->expire(); }) {}
  /// For Recycler.
  void clear();

 private:
  static void submit(const std::shared_ptr<Inference>& self);
  void finish(Answer answer);
  void fail(Error error);
  void expire() { fail({Code::kDeadlineExceeded, "the deadline passed before the answer was ready"}); }

  Frontend* frontend_ = nullptr;
  std::shared_ptr<Version> version_;  // null once ended
  protocol::InferRequest request_;
  Clock::time_point arrived_, deadline_;
  bool shadow_ = false;
  Trace trace_;
  TfApi api_ = TfApi::kInfer;
  Done done_;
  std::weak_ptr<Job> job_;  // the job holds the inference through `done`, never the other way round
  Answer answer_;           // on its way from the compute thread
  int64_t rows_ = 1;
  net::Deadline alarm_;
  bool queued_ = false;
  bool in_order_ = false;   // of a sequence: the answer before it may still be on its way to this thread
  bool submitted_ = false;  // submit() is over: an answer that comes out of it waits until then
};

}  // namespace serin::serving
