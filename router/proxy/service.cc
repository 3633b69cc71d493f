// service.cc: what a lane keeps at hand so that a request looks nothing up twice.

#include "router/proxy/service.h"

#include <algorithm>

namespace serin::router {

Service* Router::find(const Target& target) const {
  const auto found = services.find(target.service);
  if (found != services.end()) return found->second.get();
  const bool paddle = !target.model && target.service == "GeneralModelService";
  return paddle && services.size() == 1 ? services.begin()->second.get() : nullptr;
}

bool Router::ready() const {
  if (ending) return false;
  return std::ranges::all_of(services, [](const auto& named) {
    const Service& service = *named.second;
    return service.versions[service.controller->split(service.index).stable]->healthy() > 0;
  });
}

net::Upstream& Lane::upstream(EndpointState& endpoint, bool grpc) {
  Connections& known = upstreams_[&endpoint];
  known.endpoint = endpoint.weak_from_this();
  if (!grpc) {
    if (!known.http) known.http = std::make_unique<net::Upstream>(loop_, endpoint.config.origin, endpoint.client_options(grpc));
    return *known.http;
  }
  // A call may go on for ever; what of it lies here is bounded by windows.
  constexpr size_t kAnyNumber = ~size_t{0};
  if (!known.grpc) {
    net::ClientOptions options = endpoint.client_options(grpc);
    options.response_bytes = kAnyNumber;
    known.grpc = std::make_unique<net::Upstream>(loop_, *endpoint.config.grpc, options);
  }
  return *known.grpc;
}

void Lane::forget_gone() {
  for (auto& [version, list] : lists_) list.get();  // a lane without requests would hold an old one for ever
  std::erase_if(upstreams_, [](const auto& each) { return each.second.endpoint.expired(); });
}

const Endpoints::List& Lane::endpoints(const Endpoints& version) {
  return *lists_.try_emplace(&version, version.published()).first->second.get();
}

const std::shared_ptr<const rollout::Spec>& Lane::spec(const Service& service, const Split& split) {
  Seen& seen = specs_[&service];
  if (const uint64_t word = split.pack(); seen.word != word) {
    seen.spec = service.controller->spec(service.index);
    seen.word = word;
  }
  return seen.spec;
}

void Lane::count_answer(const Service& service, size_t version, int status) {
  const Answered answered{&service, version, status};
  if (last_answer_.first == answered && last_answer_.second) return last_answer_.second->add();
  count_answer(answered, std::to_string(status));
}

void Lane::count_answer(const Service& service, size_t version, net::GrpcStatus status) {
  count_answer({&service, version, -static_cast<int>(status)}, net::grpc_name(status));
}

void Lane::count_answer(const Answered& answered, std::string_view code) {
  const auto& [service, version, key] = answered;
  auto& counter = answers_[answered];
  if (!counter) {
    counter = service->metrics->counter(
        "serin_route_requests_total", "Answers given to clients.",
        {{"service", service->config->name}, {"version", service->versions[version]->version()}, {"code", std::string(code)}});
  }
  counter->add();
  last_answer_ = {answered, counter.get()};
}

}  // namespace serin::router
