#include "router/scaling/external_scaler.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "external_scaler.pb.h"
#include "kernels/mutex.h"
#include "router/scaling/scaler_trigger.h"

namespace serin::router {
namespace {

namespace keda = externalscaler;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{100};  // between two looks of a stream
constexpr std::chrono::seconds kRepeat{10};

void finish_with(net::GrpcCall& call, const Error& error) {
  call.finish(error.code == Code::kNotFound ? net::GrpcStatus::kNotFound : net::GrpcStatus::kInvalidArgument, error.message);
}

Result<ScalerTrigger> trigger_of(const keda::ScaledObjectRef& object) {
  const auto& metadata = object.scaler_metadata();
  auto trigger = ScalerTrigger::read(std::map<std::string, std::string>(metadata.begin(), metadata.end()));
  if (trigger) return trigger;
  return trigger.error().in("ScaledObject " + object.namespace_() + "/" + object.name());
}

/// For versions of KEDA that know whole numbers only: never too few.
int64_t whole(double value) { return std::llround(std::min(std::ceil(value), 1e15)); }

template <class Message>
Result<Message> parse(std::string_view text) {
  Message message;
  if (text.size() <= INT_MAX && message.ParseFromArray(text.data(), static_cast<int>(text.size()))) return message;
  return invalid("the message is no " + message.GetTypeName());
}

/// One message in, one message out.
template <class Request, class Answer>
class Question final : public net::GrpcMethod {
 public:
  using Work = std::function<Result<Answer>(const Request&)>;
  explicit Question(Work work) : work_(std::move(work)) {}

  void on_message(const std::shared_ptr<net::GrpcCall>& call, std::string_view message) override {
    const Result<Request> request = parse<Request>(message);
    if (!request) return finish_with(*call, request.error());
    const Result<Answer> answer = work_(*request);
    if (!answer) return finish_with(*call, answer.error());
    call->send(net::grpc_framed(answer->SerializeAsString()));
    call->finish(net::GrpcStatus::kOk);
  }

 private:
  const Work work_;
};

/// All streams look about ten times a second, and one look at the loads serves them all.
class RecentLoads {
 public:
  explicit RecentLoads(LoadSource source) : source_(std::move(source)) {}
  std::shared_ptr<const std::vector<VersionLoad>> get() {
    const MutexLock lock(mutex_);
    const auto now = steady_clock::now();
    if (!loads_ || now - read_at_ >= kLook) {
      loads_ = std::make_shared<const std::vector<VersionLoad>>(source_());
      read_at_ = now;
    }
    return loads_;
  }

 private:
  const LoadSource source_;
  Mutex mutex_;
  std::shared_ptr<const std::vector<VersionLoad>> loads_ SERIN_GUARDED_BY(mutex_);
  steady_clock::time_point read_at_ SERIN_GUARDED_BY(mutex_);
};

class ActivityStream final : public net::GrpcMethod {
 public:
  explicit ActivityStream(LoadSource loads) : loads_(std::move(loads)) {}
  bool many_answers() const override { return true; }

  void on_message(const std::shared_ptr<net::GrpcCall>& call, std::string_view message) override {
    const auto object = parse<keda::ScaledObjectRef>(message);
    if (!object) return finish_with(*call, object.error());
    auto trigger = trigger_of(*object);
    if (!trigger) return finish_with(*call, trigger.error());
    auto watch = std::make_shared<Watch>();
    watch->trigger = std::move(*trigger);
    call->state = watch;
    // KEDA comes again soon after an end that is none of its own, and later after an error.
    call->on_drain = [weak = std::weak_ptr(call)] {
      if (const auto still = weak.lock()) still->finish(net::GrpcStatus::kOk);
    };
    look(call, *watch);
  }

 private:
  struct Watch {
    ScalerTrigger trigger;
    std::optional<bool> told;
    steady_clock::time_point told_at;
    net::Timer timer;
  };

  void look(const std::weak_ptr<net::GrpcCall>& weak, Watch& watch) {
    const auto call = weak.lock();
    if (!call || call->ended()) return;
    const auto load = watch.trigger.find(*loads_.get());
    if (!load) return finish_with(*call, load.error());
    const bool active = watch.trigger.is_active(*load);
    const auto now = steady_clock::now();
    if (watch.told != active || now - watch.told_at >= kRepeat) {
      watch.told = active;
      watch.told_at = now;
      keda::IsActiveResponse answer;
      answer.set_result(active);
      call->send(net::grpc_framed(answer.SerializeAsString()));
    }
    watch.timer = call->loop().after(kLook, [this, weak, &watch] { look(weak, watch); });
  }

  RecentLoads loads_;
};

}  // namespace

ExternalScaler::ExternalScaler(const LoadSource& loads) {
  const auto add = [this](std::string_view name, std::unique_ptr<net::GrpcMethod> serves) {
    methods_.push_back({.path = "/externalscaler.ExternalScaler/" + std::string(name), .serves = std::move(serves)});
  };
  using IsActive = Question<keda::ScaledObjectRef, keda::IsActiveResponse>;
  add("IsActive", std::make_unique<IsActive>([loads](const keda::ScaledObjectRef& object) -> Result<keda::IsActiveResponse> {
        SERIN_TRY(const ScalerTrigger trigger, trigger_of(object));
        SERIN_TRY(const VersionLoad load, trigger.find(loads()));
        keda::IsActiveResponse answer;
        answer.set_result(trigger.is_active(load));
        return answer;
      }));
  add("StreamIsActive", std::make_unique<ActivityStream>(loads));
  using Spec = Question<keda::ScaledObjectRef, keda::GetMetricSpecResponse>;
  add("GetMetricSpec", std::make_unique<Spec>([loads](const keda::ScaledObjectRef& object) -> Result<keda::GetMetricSpecResponse> {
        SERIN_TRY(const ScalerTrigger trigger, trigger_of(object));
        SERIN_CHECK(trigger.find(loads()));  // better no autoscaler than one of a version that is not there
        keda::GetMetricSpecResponse answer;
        keda::MetricSpec& spec = *answer.add_metric_specs();
        spec.set_metric_name(std::string(trigger.metric->name));
        spec.set_target_size(whole(trigger.threshold));
        spec.set_target_size_float(trigger.threshold);
        return answer;
      }));
  using Values = Question<keda::GetMetricsRequest, keda::GetMetricsResponse>;
  add("GetMetrics", std::make_unique<Values>([loads](const keda::GetMetricsRequest& request) -> Result<keda::GetMetricsResponse> {
        SERIN_TRY(const ScalerTrigger trigger, trigger_of(request.scaled_object_ref()));
        if (request.metric_name() != trigger.metric->name)
          return invalid("the trigger's metric is " + std::string(trigger.metric->name) + ", and not '" + request.metric_name() + "'");
        SERIN_TRY(const VersionLoad load, trigger.find(loads()));
        const double value = trigger.metric->value(load);
        keda::GetMetricsResponse answer;
        keda::MetricValue& told = *answer.add_metric_values();
        told.set_metric_name(request.metric_name());
        told.set_metric_value(whole(value));
        told.set_metric_value_float(value);
        return answer;
      }));
}

net::GrpcMethod* ExternalScaler::method(std::string_view path) const {
  const auto found = std::ranges::find(methods_, path, &Method::path);
  return found == methods_.end() ? nullptr : found->serves.get();
}

}  // namespace serin::router
