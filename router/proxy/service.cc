// service.cc: what a lane keeps at hand so that a request looks nothing up twice.

#include "router/proxy/service.h"

#include <algorithm>

#include "router/proxy/attempt.h"
#include "router/proxy/shadow.h"

namespace serin::router {

bool Router::ready() const {
  if (ending) return false;
  return std::ranges::all_of(services, [](const auto& named) {
    const Service& service = *named.second;
    return service.versions[service.controller->split(service.index).stable]->healthy() > 0;
  });
}

Lane::Lane(uint64_t seed) : random_state_(seed) {}
Lane::~Lane() = default;

uint64_t Lane::random() {
  uint64_t z = random_state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

net::Upstream& Lane::upstream(EndpointState& endpoint) {
  Connections& known = upstreams_[&endpoint];
  if (!known.upstream) known = {endpoint.weak_from_this(), std::make_unique<net::Upstream>(endpoint.config.origin, net::ClientOptions{})};
  return *known.upstream;
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
  auto& counter = answers_[{&service, version, status}];
  if (!counter) {
    counter = service.metrics->counter(
        "serin_route_requests_total", "Answers given to clients.",
        {{"service", service.config->name}, {"version", service.versions[version]->version()}, {"code", std::to_string(status)}});
  }
  counter->add();
}

Attempt& Lane::take_attempt() {
  if (free_attempts_.empty()) {
    all_attempts_.push_back(std::make_unique<Attempt>(*this));
    return *all_attempts_.back();
  }
  Attempt& attempt = *free_attempts_.back();
  free_attempts_.pop_back();
  return attempt;
}

void Lane::give_back(Attempt& attempt) {
  buffers_.give(std::move(attempt.body()));
  free_attempts_.push_back(&attempt);
}

void Lane::own(std::unique_ptr<Shadow> shadow) { shadows_.push_back(std::move(shadow)); }
void Lane::end(Shadow& shadow) {
  std::erase_if(shadows_, [&shadow](const auto& each) { return each.get() == &shadow; });
}

}  // namespace serin::router
