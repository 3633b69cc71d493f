#include "runtime/serving/apis/inference.h"

#include <algorithm>
#include <utility>

#include "runtime/protocol/tensor/classification.h"

namespace serin::serving {
namespace {

constexpr int64_t kLongestUs = 86'400'000'000;  // a day: sums do not overflow

/// What a model refuses while it runs (an index past a table's end) is the client's fault; to Triton all that fails there is the server's.
constexpr auto kOfClients = {Code::kInvalidArgument, Code::kOutOfRange, Code::kFailedPrecondition, Code::kTooLarge, Code::kUnsupported};

}  // namespace

KeptFinished::KeptFinished(const Finished& finished)
    : version_(finished.version.shared_from_this()),
      wanted_(finished.wanted),
      id_(finished.id),
      answer_(finished.answer),
      taken_(finished.taken) {}

size_t work_in_regions(const SharedMemory& regions, std::string_view message) {
  const size_t most = regions.largest() / kBinaryIsFaster;
  return most > net::kMostOnIo && message.find("shared_memory_region") != std::string_view::npos ? most : 0;
}

size_t work_to_encode(const Finished& finished, bool binary) {
  size_t work = 0;
  for (const protocol::WantedOutput& wanted : finished.wanted) {
    const TensorView& output = finished.answer.outputs->tensors[wanted.index];
    work += output.bytes() / (binary || wanted.binary || wanted.shared ? kBinaryIsFaster : 1);
    if (output.dtype != DType::kString) continue;
    for (const std::string& text : output.span<const std::string>()) work += text.size();
  }
  return work;
}

OutputViews::OutputViews(const Finished& finished) {
  const Version& version = finished.version;
  for (const protocol::WantedOutput& wanted : finished.wanted) {
    TensorView view = finished.answer.outputs->tensors[wanted.index];
    if (wanted.classes > 0) {
      protocol::Classes classes =
          protocol::classify(view, version.batchable(), wanted.classes, version.signature().outputs[wanted.index].labels);
      texts_.push_back(std::move(classes.texts));
      view = {DType::kString, classes.shape, texts_.back().data()};
    }
    views_.push_back(view);
  }
}

protocol::Few<protocol::NamedTensor> named_outputs(const Finished& finished, const OutputViews& views) {
  protocol::Few<protocol::NamedTensor> named;
  named.reserve(finished.wanted.size());
  for (size_t i = 0; i < finished.wanted.size(); ++i) {
    const protocol::WantedOutput& wanted = finished.wanted[i];
    const protocol::TensorSpec& spec = finished.version.signature().outputs[wanted.index];
    named.push_back({spec.name, views[i], wanted.binary && !wanted.shared, wanted.shared, spec.alias});
  }
  return named;
}

Status write_shared(std::span<const protocol::NamedTensor> outputs) {
  for (const protocol::NamedTensor& output : outputs)
    if (output.shared) SERIN_CHECK(protocol::write_shared(*output.shared, output.tensor, output.name));
  return {};
}

std::shared_ptr<Inference> Inference::start(InferencePool& pool, Call call, Done done) {
  const std::shared_ptr<Inference> inference = pool.inferences_.take();
  inference->pool_ = &pool;
  inference->version_ = std::move(call.version);
  inference->request_ = std::move(call.request);
  inference->arrived_ = call.arrived;
  inference->deadline_ = call.deadline;
  inference->shadow_ = call.shadow;
  inference->trace_ = {.door = call.door, .received = call.received, .arrived = call.arrived};
  inference->api_ = call.api;
  inference->done_ = std::move(done);
  if (const int64_t timeout = inference->request_.timeout_us; timeout > 0 && inference->version_->timeout_is_deadline())
    inference->deadline_ = std::min(call.deadline, call.arrived + std::chrono::microseconds(std::min(timeout, kLongestUs)));
  submit(inference);
  return inference;
}

void Inference::submit(const std::shared_ptr<Inference>& self) {
  Inference& mine = *self;
  const std::shared_ptr<Job> job = mine.pool_->jobs_.take();
  job->inputs.swap(mine.request_.inputs);  // memory goes round
  std::swap(job->memory, mine.request_.memory);
  job->texts.swap(mine.request_.texts);
  std::swap(job->share, mine.request_.share);
  std::swap(job->sequence, mine.request_.sequence);
  mine.in_order_ = job->sequence.any();
  job->arrived = mine.arrived_;
  job->deadline = mine.deadline_;
  job->priority = mine.request_.priority;
  job->patience = std::chrono::microseconds(std::min(mine.request_.timeout_us, kLongestUs));
  job->shadow = mine.shadow_;
  if (!mine.shadow_) job->trace = mine.trace_.id = mine.version_->host().tracer.begin(mine.version_->model());
  if (mine.trace_.id != 0) mine.trace_.queued = Clock::now();
  net::Loop& loop = *mine.pool_->loops_.here();
  job->loop = &loop;
  job->done = [self, &loop](Answer answer) {
    if (loop.is_here() && self->submitted_ && !self->in_order_) return loop.run([&] { self->finish(std::move(answer)); });
    self->answer_ = std::move(answer);
    loop.post([self] { self->finish(std::move(self->answer_)); });
  };
  mine.job_ = job;
  if (mine.deadline_ != Clock::time_point::max()) mine.alarm_.set(loop.deadlines(), mine.deadline_);
  if (!mine.shadow_) mine.version_->metrics().at_work(1);
  mine.queued_ = true;
  const auto queued = mine.version_->submit(job);
  mine.rows_ = job->rows;
  mine.submitted_ = true;
  if (queued) return;
  mine.queued_ = false;
  mine.fail(queued.error());
}

void Inference::finish(Answer answer) {
  // Let go of at the end: the inference may live until a run ends that nobody waits for any more: at shutdown longer than the pool.
  const std::shared_ptr<Version> version = std::exchange(version_, nullptr);
  if (!version) return;
  alarm_.leave();
  const bool rode = answer.batch.boot != 0;
  if (rode && !answer.outputs) answer.outputs = in_dialect(pool_->dialect_, std::move(answer.outputs), kOfClients, Code::kInternal);
  if (!shadow_) {
    ModelMetrics& metrics = version->metrics();
    const AskedBy by{.http = trace_.door == Trace::Door::kHttp, .api = api_};
    metrics.at_work(-1);
    if (queued_)
      metrics.answered(rows_, answer.ending(), Clock::now() - arrived_, by);
    else
      metrics.refused(answer.outputs.error(), Clock::now() - arrived_, by);
  }
  if (!rode) answer.batch = version->host().lone_tag();  // refused before it rode anywhere: a batch of one
  if (trace_.id != 0) {
    trace_.end(answer.ending());
    if (version->platform() == kEnsemblePlatform) trace_.computed = false;  // its steps did, at once perhaps, and tell of themselves
  }
  std::exchange(done_, nullptr)({*version, request_.outputs, request_.id, std::move(answer), queued_});
  if (trace_.id != 0) {
    trace_.sent = Clock::now();
    version->host().tracer.add(trace_, version->model(), version->version(), request_.id);
  }
  pool_->give(std::move(request_));
}

void Inference::fail(Error error) {
  const std::shared_ptr<Job> waiting =
      job_.lock();  // to the end: its `done` holds this inference, and whoever drops it may be another thread
  if (waiting && version_) {
    waiting->abandoned = true;
    if (queued_) version_->withdraw(waiting);
  }
  Answer answer;
  answer.outputs = std::move(error);
  finish(std::move(answer));
}

void Inference::clear() {
  alarm_.leave();  // where starting it threw
  done_ = nullptr;
  version_ = nullptr;
  request_ = {};
  job_.reset();
  answer_ = Answer();
  rows_ = 1;
  trace_ = {};
  queued_ = submitted_ = in_order_ = false;
}

protocol::InferRequest InferencePool::take_request() {
  if (requests_.empty()) return {};
  protocol::InferRequest taken = std::move(requests_.back());
  requests_.pop_back();
  return taken;
}

void InferencePool::give(protocol::InferRequest over) {
  over.clear();
  if (requests_.size() < Recycler<Job>::kMost) requests_.push_back(std::move(over));
}

}  // namespace serin::serving
