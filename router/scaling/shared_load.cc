#include "router/scaling/shared_load.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <utility>

namespace serin::router {
namespace {

constexpr std::chrono::seconds kFreshFor{2};
constexpr double kMostOfANumber = 1e9;  // so that sums stay numbers

Error corrupt() { return {Code::kCorrupt, "not the load of a router"}; }

Result<VersionLoad> read_load(const boost::json::value& value) {
  const boost::json::object* object = value.if_object();
  if (object == nullptr) return corrupt();
  const auto text = [object](std::string_view key) -> const boost::json::string* {
    const boost::json::value* found = object->if_contains(key);
    return found == nullptr ? nullptr : found->if_string();
  };
  const auto number = [object](std::string_view key) {
    const boost::json::value* found = object->if_contains(key);
    if (found == nullptr || !found->is_number()) return -1.;
    const double given = found->to_number<double>();
    return given <= kMostOfANumber ? given : -1;
  };
  const boost::json::string *service = text("service"), *version = text("version");
  const double in_flight = number("in_flight"), rate = number("requests_per_second"), unserved = number("unserved");
  if (service == nullptr || version == nullptr || in_flight < 0 || rate < 0 || unserved < 0) return corrupt();
  return VersionLoad{.service = std::string(*service),
                     .version = std::string(*version),
                     .in_flight = std::llround(in_flight),
                     .requests_per_second = rate,
                     .unserved = std::llround(unserved)};
}

}  // namespace

std::string encode_loads(const LoadMessage& message) {
  boost::json::array loads;
  for (const VersionLoad& load : message.loads) {
    if (load.in_flight <= 0 && load.requests_per_second == 0 && load.unserved == 0) continue;
    loads.push_back(boost::json::object{{"service", load.service},
                                        {"version", load.version},
                                        {"in_flight", std::max<int64_t>(load.in_flight, 0)},
                                        {"requests_per_second", load.requests_per_second},
                                        {"unserved", load.unserved}});
  }
  return boost::json::serialize(boost::json::object{{"member", message.member}, {"loads", std::move(loads)}});
}

Result<LoadMessage> decode_loads(std::string_view text) {
  boost::system::error_code unreadable;
  const boost::json::value value = boost::json::parse(text, unreadable);
  const boost::json::object* object = unreadable ? nullptr : value.if_object();
  const boost::json::value* member = object == nullptr ? nullptr : object->if_contains("member");
  const boost::json::value* loads = object == nullptr ? nullptr : object->if_contains("loads");
  if (member == nullptr || !member->is_string() || loads == nullptr || !loads->is_array()) return corrupt();
  LoadMessage message{.member = std::string(member->as_string())};
  for (const boost::json::value& each : loads->as_array()) {
    SERIN_TRY(VersionLoad load, read_load(each));
    message.loads.push_back(std::move(load));
  }
  return message;
}

void SharedLoad::note(LoadMessage message, Time now) {
  const MutexLock lock(mutex_);
  std::erase_if(told_, [now](const auto& told) { return now - told.second.at > kFreshFor; });
  told_[message.member] = {.at = now, .loads = std::move(message.loads)};
}

std::vector<VersionLoad> SharedLoad::with(const std::vector<VersionLoad>& own, const std::vector<std::string>& others, Time now) const {
  const MutexLock lock(mutex_);
  std::vector<VersionLoad> whole = own;
  std::map<std::pair<std::string_view, std::string_view>, size_t> places;
  for (size_t i = 0; i < own.size(); ++i) places.emplace(std::pair(std::string_view(own[i].service), std::string_view(own[i].version)), i);
  for (const std::string& member : others) {
    const auto told = told_.find(member);
    const bool silent = told == told_.end() || now - told->second.at > kFreshFor;
    for (const VersionLoad& load : silent ? own : told->second.loads) {
      const auto place = places.find({load.service, load.version});
      if (place == places.end()) continue;  // not in the configuration of this router
      VersionLoad& same = whole[place->second];
      same.in_flight += load.in_flight;
      same.requests_per_second += load.requests_per_second;
      if (!silent) same.unserved += load.unserved;
    }
  }
  return whole;
}

}  // namespace serin::router
