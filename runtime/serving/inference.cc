#include "runtime/serving/inference.h"

#include <algorithm>
#include <utility>

#include "runtime/protocol/classification.h"

namespace serin::serving {
namespace {

constexpr int64_t kLongestUs = 86'400'000'000;  // a day: sums do not overflow

}  // namespace

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

std::vector<protocol::NamedTensor> named_outputs(const Finished& finished, const OutputViews& views) {
  std::vector<protocol::NamedTensor> named;
  named.reserve(finished.wanted.size());
  for (size_t i = 0; i < finished.wanted.size(); ++i) {
    const protocol::WantedOutput& wanted = finished.wanted[i];
    const protocol::TensorSpec& spec = finished.version.signature().outputs[wanted.index];
    named.push_back({spec.name, views[i], wanted.binary && !wanted.shared, wanted.shared, spec.alias});
  }
  return named;
}

Status write_shared(const std::vector<protocol::NamedTensor>& outputs) {
  for (const protocol::NamedTensor& output : outputs)
    if (output.shared) SERIN_CHECK(protocol::write_shared(*output.shared, output.tensor, output.name));
  return {};
}

Inference::Inference(Call call, Done done)
    : version_(std::move(call.version)),
      request_(std::move(call.request)),
      arrived_(call.arrived),
      deadline_(call.deadline),
      shadow_(call.shadow),
      done_(std::move(done)) {
  if (request_.timeout_us > 0)
    deadline_ = std::min(deadline_, arrived_ + std::chrono::microseconds(std::min(request_.timeout_us, kLongestUs)));
}

std::shared_ptr<Inference> Inference::start(net::Loops& loops, Call call, Done done) {
  std::shared_ptr<Inference> inference(new Inference(std::move(call), std::move(done)));
  inference->submit(loops);
  return inference;
}

void Inference::submit(net::Loops& loops) {
  const auto job = std::make_shared<Job>();
  job->inputs = std::move(request_.inputs);
  job->memory = std::move(request_.memory);
  job->texts = std::move(request_.texts);
  job->arrived = arrived_;
  job->deadline = deadline_;
  job->priority = request_.priority;
  job->sequence = std::move(request_.sequence);
  job->shadow = shadow_;
  job->done = [self = shared_from_this(), &loops, loop = net::this_loop()](Answer answer) {
    if (net::this_loop() == loop && self->submitted_) return net::run_here([&] { self->finish(std::move(answer)); });
    loops.post(loop, [self, held = std::make_shared<Answer>(std::move(answer))] { self->finish(std::move(*held)); });
  };
  job_ = job;
  if (deadline_ != Clock::time_point::max()) {
    timer_ = net::after(deadline_ - Clock::now(), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->fail({Code::kDeadlineExceeded, "the deadline passed before the answer was ready"});
    });
  }
  queued_ = true;
  const auto queued = version_->submit(job);
  rows_ = job->rows;
  submitted_ = true;
  if (queued) return;
  queued_ = false;
  fail(queued.error());
}

void Inference::finish(Answer answer) {
  // Let go of at the end: the inference may live until a run ends that nobody waits for any more: at shutdown longer than the pool.
  const std::shared_ptr<Version> version = std::exchange(version_, nullptr);
  if (!version) return;
  timer_ = net::Timer();
  if (!shadow_) {
    if (queued_) version->metrics().pending->add(-1);
    version->metrics().answered(rows_, answer, Clock::now() - arrived_);
  }
  if (answer.batch.boot == 0) answer.batch = version->host().lone_tag();  // refused before it rode anywhere: a batch of one
  std::exchange(done_, nullptr)({*version, request_.outputs, std::move(answer)});
}

void Inference::fail(Error error) {
  Answer answer;
  answer.outputs = std::move(error);
  if (const auto waiting = job_.lock()) waiting->abandoned = true;
  finish(std::move(answer));
}

}  // namespace serin::serving
