// json_error.cc: reads the text once more with Boost.JSON's event parser, which builds nothing and therefore costs no memory, and stops where it is
// at fault. Its nesting limit is wide: depth has a message of its own.

#include "runtime/protocol/json_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>

namespace serin::protocol {
namespace {

namespace json = boost::json;

constexpr size_t kShown = 16;

/// Takes every event and keeps nothing.
struct Listener {
  // NOLINTBEGIN(readability-identifier-naming): the names are Boost.JSON's
  static constexpr size_t max_object_size = static_cast<size_t>(-1);
  static constexpr size_t max_array_size = static_cast<size_t>(-1);
  static constexpr size_t max_key_size = static_cast<size_t>(-1);
  static constexpr size_t max_string_size = static_cast<size_t>(-1);
  // NOLINTEND(readability-identifier-naming)
  using Failure = boost::system::error_code;

  bool on_document_begin(Failure&) { return true; }
  bool on_document_end(Failure&) { return true; }
  bool on_object_begin(Failure&) { return true; }
  bool on_object_end(size_t, Failure&) { return true; }
  bool on_array_begin(Failure&) { return true; }
  bool on_array_end(size_t, Failure&) { return true; }
  bool on_key_part(json::string_view, size_t, Failure&) { return true; }
  bool on_key(json::string_view, size_t, Failure&) { return true; }
  bool on_string_part(json::string_view, size_t, Failure&) { return true; }
  bool on_string(json::string_view, size_t, Failure&) { return true; }
  bool on_number_part(json::string_view, Failure&) { return true; }
  bool on_int64(int64_t, json::string_view, Failure&) { return true; }
  bool on_uint64(uint64_t, json::string_view, Failure&) { return true; }
  bool on_double(double, json::string_view, Failure&) { return true; }
  bool on_bool(bool, Failure&) { return true; }
  bool on_null(Failure&) { return true; }
  bool on_comment_part(json::string_view, Failure&) { return true; }
  bool on_comment(json::string_view, Failure&) { return true; }
};

/// What stands at the fault, as far as a log and a terminal can show it.
std::string shown(std::string_view rest) {
  const auto printable = [](char c) { return c >= 0x20 && c < 0x7F; };
  const auto end = std::find_if_not(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(std::min(rest.size(), kShown)), printable);
  if (end != rest.begin()) return fmt::format(", before '{}'", std::string_view(rest.begin(), end));
  return rest.empty() ? "" : fmt::format(", before byte 0x{:02X}", static_cast<unsigned char>(rest.front()));
}

}  // namespace

std::optional<std::string> explain_json_error(std::string_view text) {
  json::parse_options options;
  options.max_depth = 1024;
  json::basic_parser<Listener> parser(options);
  boost::system::error_code failure;
  const size_t end = parser.write_some(/*more=*/false, text.data(), text.size(), failure);
  if (failure) return fmt::format("{} at {}{}", failure.message(), end, shown(text.substr(end)));
  const size_t extra = std::min(text.find_first_not_of(" \t\r\n", end), text.size());
  if (extra == text.size()) return std::nullopt;
  return fmt::format("more text after the end of the document at {}{}", extra, shown(text.substr(extra)));
}

}  // namespace serin::protocol
