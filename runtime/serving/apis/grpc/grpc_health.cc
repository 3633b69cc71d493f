// grpc_health.cc: the health protocol, for Kubernetes' gRPC probes and clients that balance by it. The server as a whole, its service and each model
// have a health: a model's is that of its latest version.

#include <optional>

#include "health.pb.h"
#include "runtime/serving/apis/grpc/unary_method.h"

namespace serin::serving {
namespace {

namespace health = grpc::health::v1;
using ServingStatus = health::HealthCheckResponse::ServingStatus;

constexpr std::chrono::milliseconds kLook{500};  // between two looks of who watches

ServingStatus health_of(Frontend& frontend, const std::string& service) {
  if (service.empty() || service == "inference.GRPCInferenceService")
    return frontend.ready() ? health::HealthCheckResponse::SERVING : health::HealthCheckResponse::NOT_SERVING;
  const auto ready = frontend.catalogue().ready(service, "");
  if (!ready && ready.error().code == Code::kNotFound) return health::HealthCheckResponse::SERVICE_UNKNOWN;
  return ready ? health::HealthCheckResponse::SERVING : health::HealthCheckResponse::NOT_SERVING;
}

class WatchMethod final : public net::GrpcMethod {
 public:
  explicit WatchMethod(Frontend& frontend) : frontend_(frontend) {}
  bool many_answers() const override { return true; }

  void on_message(const std::shared_ptr<net::GrpcCall>& call, std::string_view message) override {
    health::HealthCheckRequest request;
    if (!parse(request, message)) return finish_with(*call, {Code::kInvalidArgument, "the message is no HealthCheckRequest"});
    auto watch = std::make_shared<Watch>();
    watch->service = request.service();
    call->state = watch;
    call->on_drain = [weak = std::weak_ptr(call)] {
      if (const auto still = weak.lock()) finish_with(*still, {Code::kUnavailable, "the server ends"});
    };
    look(frontend_, call, *watch);
  }

 private:
  struct Watch {
    std::string service;
    std::optional<ServingStatus> said;
    net::Timer timer;
  };

  static void look(Frontend& frontend, const std::weak_ptr<net::GrpcCall>& weak, Watch& watch) {
    const auto call = weak.lock();
    if (!call || call->ended()) return;
    const ServingStatus now = health_of(frontend, watch.service);
    if (watch.said != now) {
      watch.said = now;
      health::HealthCheckResponse answer;
      answer.set_status(now);
      call->send(net::grpc_framed(answer.SerializeAsString()));
    }
    watch.timer = call->loop().after(kLook, [&frontend, weak, &watch] { look(frontend, weak, watch); });
  }

  Frontend& frontend_;
};

}  // namespace

void add_health_methods(Frontend& frontend, GrpcMethodMap& methods) {
  add_unary<health::HealthCheckRequest, health::HealthCheckResponse>(
      methods, "/grpc.health.v1.Health/Check",
      [&frontend](const health::HealthCheckRequest& request) -> Result<health::HealthCheckResponse> {
        health::HealthCheckResponse answer;
        answer.set_status(health_of(frontend, request.service()));
        if (answer.status() == health::HealthCheckResponse::SERVICE_UNKNOWN)
          return Error{Code::kNotFound, "there is no service and no model '" + request.service() + "' here"};
        return answer;
      });
  methods.emplace("/grpc.health.v1.Health/Watch", std::make_unique<WatchMethod>(frontend));
}

}  // namespace serin::serving
