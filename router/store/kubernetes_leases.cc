#include "router/store/kubernetes_leases.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iomanip>
#include <sstream>

#include "router/kubernetes/api_client.h"

namespace serin::store {

namespace json = boost::json;
using std::chrono::nanoseconds;

namespace {

constexpr std::chrono::seconds kLongestStep{1};  // between two looks: more is an outage
// A lease that is seen for the first time is new, unless it is older than any difference of clocks that a cluster has.
constexpr std::chrono::seconds kSurelyOver{60};

/// The age by this machine's clock; zero if it cannot be read.
nanoseconds age_by_clock(const std::string& renewed) {
  std::tm time{};
  std::istringstream text(renewed);
  text >> std::get_time(&time, "%Y-%m-%dT%H:%M:%S");
  if (text.fail()) return nanoseconds(0);
  return std::chrono::system_clock::now() - std::chrono::system_clock::from_time_t(timegm(&time));
}

}  // namespace

void KubernetesLeases::see(const json::array& leases, Clock::time_point now) {
  const nanoseconds step = std::min<nanoseconds>(looked_ == Clock::time_point() ? nanoseconds(0) : now - looked_, kLongestStep);
  looked_ = now;
  std::map<std::string, Seen> all;
  for (const json::value& item : leases) {
    if (!item.is_object()) continue;
    const json::object& lease = item.as_object();
    const std::string name = kubernetes::text_at(lease, {"metadata", "name"});
    Seen seen{.version = kubernetes::text_at(lease, {"metadata", "resourceVersion"})};
    const auto known = seen_.find(name);
    if (known == seen_.end()) {
      seen.old = age_by_clock(kubernetes::text_at(lease, {"spec", "renewTime"})) > kSurelyOver;
    } else if (known->second.version == seen.version) {
      seen.age = known->second.age + step;
      seen.old = known->second.old;
    }
    all.emplace(name, std::move(seen));
  }
  seen_ = std::move(all);
}

nanoseconds KubernetesLeases::age(const std::string& name) const {
  const auto found = seen_.find(name);
  return found == seen_.end() ? nanoseconds(0) : found->second.age;
}

bool KubernetesLeases::alive(const std::string& name) const { return exists(name) && age(name) < kLeaseTime; }

std::string micro_time(std::chrono::system_clock::time_point time) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count() % 1'000'000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(time)), micros);
}

json::object make_lease(std::string_view name, std::string_view group, std::string_view holder) {
  const std::string now = micro_time(std::chrono::system_clock::now());
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", json::object{{"name", name}, {"labels", json::object{{"serin.dev/routers", group}}}}},
          {"spec", json::object{{"holderIdentity", holder},
                                {"leaseDurationSeconds", kLeaseTime.count()},
                                {"acquireTime", now},
                                {"renewTime", now},
                                {"leaseTransitions", 0}}}};
}

}  // namespace serin::store
