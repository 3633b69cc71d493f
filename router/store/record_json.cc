#include "router/store/record_json.h"

#include <fmt/format.h>

namespace serin::store {
namespace {

namespace json = boost::json;

/// Reads members of one object; remembers whether one was missing or of another kind.
class Reader {
 public:
  explicit Reader(const json::value& value) : object_(value.is_object() ? &value.as_object() : nullptr) {}

  std::string text(std::string_view key) {
    const json::value* value = find(key);
    if (value == nullptr || !value->is_string()) return fail(key), std::string();
    return std::string(std::string_view(value->as_string()));
  }
  template <class Number>
  Number number(std::string_view key) {
    const json::value* value = find(key);
    boost::system::error_code failure;
    const auto read = value == nullptr ? Number() : value->to_number<Number>(failure);
    if (value == nullptr || failure) fail(key);
    return read;
  }
  const json::value* find(std::string_view key) { return object_ == nullptr ? nullptr : object_->if_contains(key); }
  void fail(std::string_view key) { bad_ = bad_.empty() ? std::string(key) : bad_; }

  template <class T>
  Result<T> done(T read, std::string_view what) const {
    if (object_ == nullptr) return Error{Code::kCorrupt, fmt::format("{} in the shared store is not an object", what)};
    if (!bad_.empty()) return Error{Code::kCorrupt, fmt::format("{} in the shared store: '{}' is missing or invalid", what, bad_)};
    return read;
  }

 private:
  const json::object* object_;
  std::string bad_;
};

json::object to_json(const RolloutRecord& record) {
  const rollout::State& state = record.report.state;
  json::array evidence;
  for (const rollout::Evidence& line : record.report.evidence)
    evidence.push_back(json::object{{"guard", line.guard},
                                    {"bits", line.bits},
                                    {"bits_to_trip", line.bits_to_trip},
                                    {"stable_events", line.stable_events},
                                    {"canary_events", line.canary_events},
                                    {"dry_run", line.dry_run}});
  return {{"id", state.id},
          {"stable", state.stable},
          {"canary", state.canary},
          {"epoch", state.epoch},
          {"phase", rollout::phase_name(state.phase)},
          {"step", state.step},
          {"weight_ppm", state.weight_ppm},
          {"shadow_ppm", state.shadow_ppm},
          {"cause", state.cause},
          {"reason", state.reason},
          {"spec", record.spec},
          {"started_wall_ms", record.started_wall_ms},
          {"seconds", record.seconds},
          {"stable_answers", record.report.stable_answers},
          {"canary_answers", record.report.canary_answers},
          {"shadow_answers", record.report.shadow_answers},
          {"evidence", std::move(evidence)}};
}

std::optional<rollout::Evidence> evidence_from_json(const json::value& value) {
  Reader reader(value);
  rollout::Evidence line{.guard = reader.text("guard"),
                         .bits = reader.number<double>("bits"),
                         .bits_to_trip = reader.number<double>("bits_to_trip"),
                         .stable_events = reader.number<uint64_t>("stable_events"),
                         .canary_events = reader.number<uint64_t>("canary_events")};
  if (const json::value* dry = reader.find("dry_run")) line.dry_run = dry->is_bool() && dry->as_bool();
  return reader.done(line, "evidence") ? std::optional(line) : std::nullopt;
}

Result<RolloutRecord> rollout_from_json(const json::value& value, const std::string& service) {
  Reader reader(value);
  RolloutRecord record;
  record.report.state = {.id = reader.text("id"),
                         .service = service,
                         .stable = reader.text("stable"),
                         .canary = reader.text("canary"),
                         .epoch = reader.number<uint64_t>("epoch"),
                         .step = reader.number<int>("step"),
                         .weight_ppm = reader.number<uint32_t>("weight_ppm"),
                         .shadow_ppm = reader.number<uint32_t>("shadow_ppm"),
                         .cause = reader.text("cause"),
                         .reason = reader.text("reason")};
  const auto phase = rollout::find_phase(reader.text("phase"));
  if (!phase) reader.fail("phase");
  record.report.state.phase = phase.value_or(rollout::Phase::kPaused);
  if (record.report.state.weight_ppm > rollout::kAll) reader.fail("weight_ppm");
  if (record.report.state.shadow_ppm > rollout::kAll) reader.fail("shadow_ppm");
  record.spec = reader.text("spec");
  record.started_wall_ms = reader.number<int64_t>("started_wall_ms");
  record.seconds = reader.number<double>("seconds");
  record.report.stable_answers = reader.number<uint64_t>("stable_answers");
  record.report.canary_answers = reader.number<uint64_t>("canary_answers");
  record.report.shadow_answers = reader.number<uint64_t>("shadow_answers");
  if (const json::value* list = reader.find("evidence"); list != nullptr && list->is_array())
    for (const json::value& line : list->as_array())
      if (auto read = evidence_from_json(line)) record.report.evidence.push_back(*std::move(read));
  return reader.done(std::move(record), fmt::format("the rollout of service '{}'", service));
}

}  // namespace

json::object to_json(const ServiceRecord& record) {
  return {{"service", record.service},
          {"stable", record.stable},
          {"epoch", record.epoch},
          {"rollout", record.rollout ? json::value(to_json(*record.rollout)) : json::value(nullptr)}};
}

json::object to_json(const HistoryEntry& entry) {
  return {{"id", entry.id},           {"wall_ms", entry.wall_ms},       {"service", entry.service},
          {"rollout", entry.rollout}, {"event", entry.event},           {"actor", entry.actor},
          {"detail", entry.detail},   {"weight_ppm", entry.weight_ppm}, {"previous", entry.previous},
          {"digest", entry.digest}};
}

json::object to_json(const Trip& trip) {
  return {{"service", trip.service}, {"rollout", trip.rollout}, {"cause", trip.cause},
          {"reason", trip.reason},   {"member", trip.member},   {"verdict", trip.verdict}};
}

json::object to_json(const Member& member) {
  json::object applied;
  for (const auto& [service, revision] : member.applied) applied[service] = revision;
  return {{"id", member.id}, {"peer", member.peer}, {"secret", member.secret}, {"admin", member.admin}, {"applied", std::move(applied)}};
}

Result<ServiceRecord> service_from_json(const json::value& value) {
  Reader reader(value);
  ServiceRecord record{.service = reader.text("service"), .stable = reader.text("stable"), .epoch = reader.number<uint64_t>("epoch")};
  if (const json::value* rollout = reader.find("rollout"); rollout != nullptr && !rollout->is_null()) {
    SERIN_TRY(record.rollout, rollout_from_json(*rollout, record.service));
  }
  return reader.done(std::move(record), "the state of a service");
}

Result<HistoryEntry> entry_from_json(const json::value& value) {
  Reader reader(value);
  HistoryEntry entry{.id = reader.number<int64_t>("id"),
                     .wall_ms = reader.number<int64_t>("wall_ms"),
                     .service = reader.text("service"),
                     .rollout = reader.text("rollout"),
                     .event = reader.text("event"),
                     .actor = reader.text("actor"),
                     .detail = reader.text("detail"),
                     .weight_ppm = reader.number<uint32_t>("weight_ppm"),
                     .previous = reader.text("previous"),
                     .digest = reader.text("digest")};
  return reader.done(std::move(entry), "an entry of the audit log");
}

Result<Trip> trip_from_json(const json::value& value) {
  Reader reader(value);
  Trip trip{.service = reader.text("service"),
            .rollout = reader.text("rollout"),
            .cause = reader.text("cause"),
            .reason = reader.text("reason"),
            .member = reader.text("member"),
            .verdict = reader.text("verdict")};
  return reader.done(std::move(trip), "a trip");
}

Result<Member> member_from_json(const json::value& value) {
  Reader reader(value);
  Member member{.id = reader.text("id"), .peer = reader.text("peer"), .secret = reader.text("secret"), .admin = reader.text("admin")};
  if (const json::value* applied = reader.find("applied"); applied != nullptr && applied->is_object())
    for (const auto& [service, revision] : applied->as_object())
      if (revision.is_int64()) member.applied[std::string(std::string_view(service))] = revision.as_int64();
  return reader.done(std::move(member), "a member");
}

}  // namespace serin::store
