// json_error.cc: finds the fault in a JSON text. It reads the text once more with Boost.JSON's event parser, and stops at the fault. That
// parser builds nothing, so it needs memory only for the path to its position. Its nesting limit is wide: depth has a message of its own.
//
// A number that no double can store is valid JSON, so its place is kept while the rest is read: the name of its tensor may follow.

#include "runtime/protocol/json/json_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <cmath>
#include <vector>

#include "runtime/base/number.h"

namespace serin::protocol {
namespace {

namespace json = boost::json;

constexpr size_t kShown = 16, kLongestName = 128, kLongestPlace = 256;

/// Takes every event and keeps the way to the value that is read, and the first number that is too large.
class Listener {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the names are Boost.JSON's
  static constexpr size_t max_object_size = static_cast<size_t>(-1);
  static constexpr size_t max_array_size = static_cast<size_t>(-1);
  static constexpr size_t max_key_size = static_cast<size_t>(-1);
  static constexpr size_t max_string_size = static_cast<size_t>(-1);
  // NOLINTEND(readability-identifier-naming)
  using Failure = boost::system::error_code;

  bool on_document_begin(Failure&) { return true; }
  bool on_document_end(Failure&) { return true; }
  bool on_object_begin(Failure&) { return enter(/*list=*/false); }
  bool on_object_end(size_t, Failure&) { return leave(); }
  bool on_array_begin(Failure&) { return enter(/*list=*/true); }
  bool on_array_end(size_t, Failure&) { return leave(); }
  bool on_key_part(json::string_view part, size_t read, Failure&) { return add_text(levels_.back().key, part, read); }
  bool on_key(json::string_view part, size_t read, Failure&) { return add_text(levels_.back().key, part, read); }
  bool on_string_part(json::string_view part, size_t read, Failure&) { return add_name(part, read); }
  bool on_string(json::string_view part, size_t read, Failure&) { return next() && add_name(part, read); }
  bool on_number_part(json::string_view, Failure&) { return true; }
  bool on_int64(int64_t, json::string_view, Failure&) { return next(); }
  bool on_uint64(uint64_t, json::string_view, Failure&) { return next(); }
  bool on_double(double value, json::string_view text, Failure&) {
    next();
    if (!number_.data() && std::abs(value) > 1 && !parse_number<double>(text)) note(text);
    return true;
  }
  bool on_bool(bool, Failure&) { return next(); }
  bool on_null(Failure&) { return next(); }
  bool on_comment_part(json::string_view, Failure&) { return true; }
  bool on_comment(json::string_view, Failure&) { return true; }

  /// Its data is null where there was none.
  std::string_view too_large() const { return number_; }
  /// "input 'x': /inputs/0/data/7"
  std::string place() const {
    const std::string shown = place_.empty() ? "the document" : place_.substr(0, kLongestPlace);
    return tensor_.empty() ? shown : fmt::format("input '{}': {}", tensor_, shown);
  }

 private:
  struct Level {
    bool list;
    size_t index;           ///< of the value that is read; before the first it is the one that wraps to 0
    std::string key, name;  ///< of an object: where it is, and its member "name" so far
  };

  bool next() {
    if (!levels_.empty() && levels_.back().list) ++levels_.back().index;
    return true;
  }
  bool enter(bool list) {
    next();
    levels_.push_back({list, static_cast<size_t>(-1), {}, {}});
    return true;
  }
  bool leave() {
    if (waiting_ && levels_.size() == kTensor + 1) {
      tensor_ = levels_.back().name;
      waiting_ = false;
    }
    levels_.pop_back();
    return true;
  }
  /// `read`: with this part.
  static bool add_text(std::string& text, json::string_view part, size_t read) {
    if (read == part.size()) text.clear();
    text.append(part.substr(0, kLongestName - std::min(kLongestName, text.size())));
    return true;
  }
  bool add_name(json::string_view part, size_t read) {
    if (levels_.empty() || levels_.back().list || levels_.back().key != "name") return true;
    return add_text(levels_.back().name, part, read);
  }
  void note(json::string_view number) {
    number_ = number;
    for (const Level& level : levels_) place_ += level.list ? fmt::format("/{}", level.index) : "/" + level.key;
    const std::string_view top = levels_.empty() ? std::string_view() : levels_.front().key;
    waiting_ = levels_.size() > kTensor && levels_[1].list && !levels_[kTensor].list && (top == "inputs" || top == "tensor");
  }

  static constexpr size_t kTensor = 2;  // {"inputs": [{"name": ..., and Paddle's {"tensor": [{"name": ...
  std::vector<Level> levels_;
  std::string_view number_;
  std::string place_, tensor_;
  bool waiting_ = false;  // for the name of the tensor
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
  if (extra != text.size()) return fmt::format("more text after the end of the document at {}{}", extra, shown(text.substr(extra)));
  const Listener& listener = parser.handler();
  const std::string_view number = listener.too_large();
  if (!number.data()) return std::nullopt;
  return fmt::format("{} is {}{}, more than a number of any datatype, at {}", listener.place(), number.substr(0, kShown),
                     number.size() > kShown ? "..." : "", number.data() - text.data());
}

}  // namespace serin::protocol
