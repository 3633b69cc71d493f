#include "runtime/cli/release/journal.h"

#include <fmt/format.h>

#include "runtime/base/file.h"
#include "runtime/registry/history.h"

namespace serin::cli {
namespace {

namespace json = boost::json;

constexpr size_t kLargestJournal = 64 << 20;
constexpr std::string_view kSchema = "serin.release-journal/1";

}  // namespace

void Journal::say(std::string_view stage_name, std::string_view text) {
  timeline.push_back({{"at", registry::time_now()}, {"stage", stage_name}, {"text", text}});
}

Result<Journal> read_journal(const std::string& path) {
  SERIN_TRY(const std::string text, read_file(path, kLargestJournal));
  Error corrupt{Code::kCorrupt, fmt::format("{}: is no journal of a release", path)};
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_object()) return corrupt;
  const json::object& object = value.get_object();
  bool good = true;
  const auto read_text = [&](std::string_view key) {
    const json::value* found = object.if_contains(key);
    good = good && found && found->is_string();
    return good ? std::string(found->get_string()) : std::string();
  };
  const auto read_number = [&](std::string_view key) {
    const json::value* found = object.if_contains(key);
    boost::system::error_code wrong;
    const auto number = found ? found->to_number<uint64_t>(wrong) : 0;
    good = good && found && !wrong;
    return number;
  };
  Journal journal{.id = read_text("id"),
                  .service = read_text("service"),
                  .model = read_text("model"),
                  .content = read_text("content"),
                  .started = read_text("started"),
                  .by = read_text("by"),
                  .given = read_text("given"),
                  .revision = read_text("revision"),
                  .version = read_number("version"),
                  .production = read_number("production"),
                  .production_content = read_text("production_content"),
                  .slot = read_text("slot"),
                  .slot_before = read_number("slot_before"),
                  .rollout = read_text("rollout")};
  good = good && read_text("schema") == kSchema;
  const uint64_t stage = read_number("stage");
  good = good && stage <= static_cast<uint64_t>(Stage::kRecord);
  journal.stage = static_cast<Stage>(stage);
  const json::value *again = object.if_contains("again"), *stop = object.if_contains("stop"), *facts = object.if_contains("facts"),
                    *timeline = object.if_contains("timeline");
  if (!good || !again || !again->is_bool() || !facts || !facts->is_object() || !timeline || !timeline->is_array()) return corrupt;
  journal.again = again->get_bool();
  journal.facts = facts->get_object();
  journal.timeline = timeline->get_array();
  if (stop && stop->is_object()) {
    const auto part = [&](std::string_view key) {
      const json::value* found = stop->get_object().if_contains(key);
      return found && found->is_string() ? std::string(found->get_string()) : std::string();
    };
    journal.stop = Stop{part("stage"), part("reason"), part("outcome")};
  }
  return journal;
}

Status write_journal(const std::string& path, const Journal& journal) {
  json::object object{{"schema", kSchema},
                      {"id", journal.id},
                      {"service", journal.service},
                      {"model", journal.model},
                      {"content", journal.content},
                      {"started", journal.started},
                      {"by", journal.by},
                      {"stage", static_cast<uint64_t>(journal.stage)},
                      {"again", journal.again},
                      {"given", journal.given},
                      {"revision", journal.revision},
                      {"version", journal.version},
                      {"production", journal.production},
                      {"production_content", journal.production_content},
                      {"slot", journal.slot},
                      {"slot_before", journal.slot_before},
                      {"rollout", journal.rollout},
                      {"facts", journal.facts},
                      {"timeline", journal.timeline}};
  if (journal.stop)
    object["stop"] = json::object{{"stage", journal.stop->stage}, {"reason", journal.stop->reason}, {"outcome", journal.stop->outcome}};
  return write_file_atomically(path, json::serialize(object) + "\n");
}

}  // namespace serin::cli
