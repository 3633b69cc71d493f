#include "runtime/cli/release/slot.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "runtime/cli/commands.h"
#include "runtime/cli/release/child.h"
#include "runtime/net/session.h"
#include "runtime/net/target.h"

namespace serin::cli {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kAnswerTime{5};

Result<net::Response> ask(const std::string& runtime, const std::string& method, const std::string& target) {
  const auto url = net::parse_url(runtime);
  if (!url) return invalid(runtime + ": is no URL");
  net::Outgoing request{.method = method, .target = target, .headers = {}, .body = {}};
  if (method == "POST") {
    request.headers.set("Content-Type", "application/json");
    request.body = std::make_shared<const std::string>("{}");
  }
  return net::fetch(url->origin, request, kAnswerTime);
}

/// What the runtime says about a version that it does not serve; empty: nothing.
std::string reason_of(const std::string& runtime, const std::string& model, const std::string& version) {
  const auto answer = ask(runtime, "POST", "/v2/repository/index");
  boost::system::error_code error;
  const json::value index = answer && answer->status == 200 ? json::parse(answer->body, error) : json::value();
  if (error || !index.is_array()) return "";
  const auto text = [](const json::value& of, std::string_view key) {
    const json::value* found = of.is_object() ? of.get_object().if_contains(key) : nullptr;
    return found && found->is_string() ? std::string(found->get_string()) : "";
  };
  for (const json::value& each : index.get_array())
    if (text(each, "name") == model && text(each, "version") == version) return text(each, "reason");
  return "";
}

}  // namespace

std::optional<NotServing> not_serving(const std::string& runtime, const std::string& model, uint64_t version) {
  const std::string number = std::to_string(version), path = "/v2/models/" + net::escaped(model);
  const auto metadata = ask(runtime, "GET", path);
  if (!metadata) return NotServing{fmt::format("{} does not answer: {}", runtime, metadata.error().message)};
  std::string has;
  boost::system::error_code error;
  const json::value value = metadata->status == 200 ? json::parse(metadata->body, error) : json::value();
  const json::value* versions = !error && value.is_object() ? value.get_object().if_contains("versions") : nullptr;
  bool wanted = false;
  for (const json::value& each : versions && versions->is_array() ? versions->get_array() : json::array()) {
    if (!each.is_string()) continue;
    wanted = wanted || each.get_string() == number;
    has += (has.empty() ? "" : ", ") + std::string(each.get_string());
  }
  if (wanted && has == number) {
    const auto ready = ask(runtime, "GET", fmt::format("{}/versions/{}/ready", path, number));
    if (ready && ready->status == 200) return std::nullopt;
  }
  const std::string reason = reason_of(runtime, model, number);
  return NotServing{
      fmt::format("{} has version {} and not {}{}", runtime, has.empty() ? "none" : has, number, reason.empty() ? "" : ": " + reason),
      !reason.empty()};
}

Result<std::string> smoke(const Slot& slot, const std::string& model, const std::string& data, const std::string& work) {
  for (const std::string& runtime : slot.runtimes) {
    std::vector<std::string> arguments = {"load", runtime, "--model", model, "--seconds", "1", "--rate", "5", "--json"};
    const bool rows = data.ends_with(".npz");
    if (rows) arguments.insert(arguments.end(), {"--data", data});
    SERIN_TRY(ChildEnd end, run_serin(arguments, work));
    if (rows && end.exit_code == kUsage) {  // its columns have other names
      arguments.resize(arguments.size() - 2);
      SERIN_TRY(end, run_serin(arguments, work));
    }
    if (end.exit_code == kYes && end.signal == 0) continue;
    boost::system::error_code error;
    const json::value said = json::parse(end.out, error);
    const json::value* by = !error && said.is_object() ? said.get_object().if_contains("errors_by") : nullptr;
    return Error{Code::kUnavailable, fmt::format("{} did not answer test requests: {}", runtime, by ? json::serialize(*by) : end.why())};
  }
  return fmt::format("{} answered test requests", slot.runtimes.size() == 1 ? "its runtime" : "its runtimes");
}

}  // namespace serin::cli
