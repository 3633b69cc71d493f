#include "runtime/cli/release/candidate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json.hpp>
#include <filesystem>

#include "runtime/formats/model_file.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

/// "x: f32[batch,64]" -> "x: f32[?,64]"
std::string without_symbols(std::string_view type) {
  std::string text;
  bool inside = false, word = false;
  for (const char c : type) {
    if (c == '[') inside = true;
    if (c == ']') inside = false;
    const bool separates = c == '[' || c == ',' || c == ']' || c == ' ';
    if (inside && !separates && (word || !(c >= '0' && c <= '9'))) {
      if (!word) text += '?';
      word = true;
      continue;
    }
    word = false;
    text += c;
  }
  return text;
}

std::optional<std::vector<std::string>> tensors_of(const std::string& details, std::string_view key) {
  boost::system::error_code error;
  const json::value value = json::parse(details, error);
  const json::value* list = error || !value.is_object() ? nullptr : value.get_object().if_contains(key);
  if (!list || !list->is_array()) return std::nullopt;
  std::vector<std::string> texts;
  for (const json::value& each : list->get_array())
    if (each.is_string()) texts.push_back(without_symbols(each.get_string()));
  return texts;
}

}  // namespace

Result<Candidate> find_candidate(const std::string& model) {
  Candidate candidate{.given = model, .place = {}, .files = {}, .content = {}};
  SERIN_TRY(candidate.place, find_model(model));
  const fs::path file = candidate.place.file;
  std::error_code unreadable;
  candidate.files.model = candidate.place.file;
  if (!candidate.place.settings.empty()) {
    const bool is_folder = fs::is_directory(file, unreadable) && !formats::has_model_ending(file.filename().string());
    if (!is_folder) candidate.files.model = file.parent_path().string();
    const fs::path settings = fs::path(candidate.place.settings) / "serin.yaml";
    if (fs::exists(settings, unreadable))
      candidate.files.settings = settings.string();
    else if (fs::exists(settings.parent_path() / "config.pbtxt", unreadable))
      return Error{Code::kUnsupported,
                   fmt::format("{}: has config.pbtxt, which a registry does not carry; write serin.yaml", candidate.place.settings)};
  }
  SERIN_TRY(candidate.content, registry::content_digest(candidate.files));
  return candidate;
}

std::optional<std::string> contract_difference(const std::string& details, const std::string& details_of_production) {
  for (const std::string_view key : {"inputs", "outputs"}) {
    const auto now = tensors_of(details, key), before = tensors_of(details_of_production, key);
    if (now && before && *now != *before)
      return fmt::format("its {} are {}, and those of production are {}", key, fmt::join(*now, "; "), fmt::join(*before, "; "));
  }
  return std::nullopt;
}

}  // namespace serin::cli
