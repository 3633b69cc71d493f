#include "runtime/cli/registry/registry_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/planner/units.h"

namespace serin::cli {
namespace {

namespace json = boost::json;

std::string state_of(const registry::Version& version) {
  if (version.retired) return "retired: " + *version.retired;
  return fmt::format("{}", fmt::join(version.tags, ", "));
}

}  // namespace

json::object json_of(const std::string& model, const registry::Version& version) {
  json::array files, reports;
  for (const registry::StoredFile& file : version.files)
    files.push_back({{"path", file.path}, {"digest", file.digest}, {"bytes", file.bytes}, {"settings", file.settings}});
  for (const registry::Report& report : version.reports)
    reports.push_back({{"title", report.title}, {"digest", report.digest}, {"bytes", report.bytes}, {"added", report.added}});
  boost::system::error_code error;
  const json::value details = json::parse(version.details, error);
  json::object object{{"model", model},
                      {"version", version.number},
                      {"digest", version.digest},
                      {"content", version.content},
                      {"added", version.added},
                      {"by", version.by},
                      {"bytes", version.bytes()},
                      {"tags", json::array(version.tags.begin(), version.tags.end())},
                      {"retired", version.retired ? json::value(*version.retired) : json::value(nullptr)},
                      {"details", error ? json::value(nullptr) : details},
                      {"files", std::move(files)},
                      {"reports", std::move(reports)}};
  json::object origin;
  for (const auto& [key, value] : version.origin) origin[key] = value;
  object["origin"] = std::move(origin);
  return object;
}

std::string line_of(const registry::Version& version) {
  const std::string state = state_of(version);
  return fmt::format("{:>4}  {}  {:>9}{}{}", version.number, version.added, planner::short_bytes(version.bytes()),
                     state.empty() ? "" : "  ", state);
}

std::string describe(const std::string& model, const registry::Version& version) {
  std::string text = fmt::format("{}:{}\ndigest   {}\ncontent  {}\nadded    {} by {}\n", model, version.number, version.digest,
                                 version.content, version.added, version.by);
  if (!version.tags.empty()) text += fmt::format("tags     {}\n", fmt::join(version.tags, ", "));
  if (version.retired) text += fmt::format("retired  {}\n", *version.retired);
  for (const auto& [key, value] : version.origin) text += fmt::format("origin   {}={}\n", key, value);
  boost::system::error_code error;
  const json::value details = json::parse(version.details, error);
  for (const char* list : {"inputs", "outputs"}) {
    const json::value* found = error ? nullptr : details.find_pointer(fmt::format("/{}", list), error);
    error = {};
    for (const json::value& each : found && found->is_array() ? found->get_array() : json::array())
      if (each.is_string()) text += fmt::format("{:<8} {}\n", list, std::string(each.get_string()));
  }
  for (const registry::StoredFile& file : version.files)
    text +=
        fmt::format("file     {}  {}  {}\n", file.settings ? "../" + file.path : file.path, planner::short_bytes(file.bytes), file.digest);
  for (const registry::Report& report : version.reports)
    text += fmt::format("report   {}  {}  {}  {}\n", report.title, planner::short_bytes(report.bytes), report.added, report.digest);
  return text;
}

}  // namespace serin::cli
