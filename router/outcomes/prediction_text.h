// prediction_text.h: The class that a version predicted, and the line of text by which the store keeps it (prediction_log.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace serin::router {

/// The classes in an answer.
struct Prediction {
  enum class Kind : uint8_t {
    kNumbers,
    kTexts,
    kFailed,  ///< it was an error: no label is right
    kUnread   ///< it has no class that can be read
  } kind = Kind::kFailed;
  std::vector<uint64_t> rows = {};  ///< of kNumbers and kTexts: code_of() the class of each row
  std::string_view why = {};        ///< of kUnread: a text that lives as long as the program, or as Predictions that have restored it
};

/// Equal for equal classes, in every process.
uint64_t code_of(double number);
uint64_t code_of(std::string_view text);

/// A request that is kept.
struct PredictionEntry {
  std::string assigned;  ///< the text of the draw (assignment.h)
  uint64_t asked = 0;    ///< digest of the request's body, equal in every process
  Prediction prediction;
};

struct PredictionLine {
  int64_t at_ms = 0;  ///< since 1970
  std::string id = {};
  /// Nothing: the ID, which is of an earlier line, has named another request, too.
  std::optional<PredictionEntry> entry = {};
};

/// Appends it to `text`, without an end of the line.
void print_line(std::string& text, int64_t at_ms, std::string_view id, const PredictionEntry& entry);
void print_ambiguous(std::string& text, std::string_view id);
/// `why` of the prediction is a part of `line`. Nothing: it is no such line.
std::optional<PredictionLine> parse_line(std::string_view line);

}  // namespace serin::router
