#include "runtime/serving/settings/text_format.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <set>

#include "runtime/base/nearest_name.h"

namespace serin::serving {
namespace {

using google::protobuf::Descriptor;

constexpr int kNesting = 100;
constexpr size_t kMostUnknown = 64;

/// Of a message and all that it may hold.
void add_field_names(const Descriptor& message, std::set<std::string_view>& names) {
  for (int i = 0; i < message.field_count(); ++i) {
    const bool is_new = names.insert(message.field(i)->name()).second;
    if (const auto* inner = message.field(i)->message_type(); inner && is_new) add_field_names(*inner, names);
  }
}

/// Errors end the reading; warnings are about fields that the schema does not have.
class Complaints final : public google::protobuf::io::ErrorCollector {
 public:
  explicit Complaints(const Descriptor& root) : root_(root) {}

  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (first.empty()) first = fmt::format("{}:{}: {}", line + 1, column + 1, message);
  }
  void AddWarning(int line, google::protobuf::io::ColumnNumber, const std::string& message) override {
    const size_t quote = message.rfind('"'), open = quote == std::string::npos ? quote : message.rfind('"', quote - 1);
    if (open == std::string::npos || unknown.size() >= kMostUnknown) return;
    std::string name = message.substr(open + 1, quote - open - 1);
    std::string meant(nearest_name(name, names_in(message)));
    unknown.push_back({std::move(name), line + 1, std::move(meant)});
  }

  std::string first;
  std::vector<UnknownField> unknown;

 private:
  /// Of the message that the warning is about, which stands in quotes in front; behind them all others, for what stands in the wrong place.
  std::vector<std::string_view> names_in(const std::string& warning) const {
    std::vector<std::string_view> names;
    const size_t open = warning.find('"'), quote = warning.find('"', open + 1);
    const std::string type = warning.substr(open + 1, quote - open - 1);
    if (const Descriptor* own = root_.file()->pool()->FindMessageTypeByName(type))
      for (int i = 0; i < own->field_count(); ++i) names.push_back(own->field(i)->name());
    std::set<std::string_view> all;
    add_field_names(root_, all);
    names.insert(names.end(), all.begin(), all.end());
    return names;
  }

  const Descriptor& root_;
};

}  // namespace

Result<std::vector<UnknownField>> parse_text_format(std::string_view text, google::protobuf::Message& message) {
  Complaints complaints(*message.GetDescriptor());
  google::protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kNesting);
  parser.RecordErrorsTo(&complaints);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // Windows' editors begin files so
  if (parser.ParseFromString(std::string(text), &message)) return std::move(complaints.unknown);
  return Error{Code::kInvalidArgument, complaints.first.empty() ? "is no " + message.GetTypeName() : complaints.first};
}

}  // namespace serin::serving
