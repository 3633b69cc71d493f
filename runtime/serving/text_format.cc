#include "runtime/serving/text_format.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

namespace serin::serving {
namespace {

constexpr int kNesting = 100;
constexpr size_t kMostIgnored = 64;

/// Errors end the reading; warnings are about fields that the schema does not have.
class Complaints final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (first.empty()) first = fmt::format("{}:{}: {}", line + 1, column + 1, message);
  }
  void AddWarning(int line, google::protobuf::io::ColumnNumber, const std::string& message) override {
    const size_t quote = message.rfind('"'), open = quote == std::string::npos ? quote : message.rfind('"', quote - 1);
    if (open == std::string::npos || ignored.size() >= kMostIgnored) return;
    ignored.push_back(fmt::format("{} (line {})", message.substr(open + 1, quote - open - 1), line + 1));
  }

  std::string first;
  std::vector<std::string> ignored;
};

}  // namespace

Result<std::vector<std::string>> parse_text_format(std::string_view text, google::protobuf::Message& message) {
  Complaints complaints;
  google::protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kNesting);
  parser.RecordErrorsTo(&complaints);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // Windows' editors begin files so
  if (parser.ParseFromString(std::string(text), &message)) return std::move(complaints.ignored);
  return Error{Code::kInvalidArgument, complaints.first.empty() ? "is no " + message.GetTypeName() : complaints.first};
}

}  // namespace serin::serving
