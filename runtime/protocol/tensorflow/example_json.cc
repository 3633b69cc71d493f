#include "runtime/protocol/tensorflow/example_json.h"

#include <fmt/format.h>

#include <optional>

#include "runtime/base/base64.h"
#include "runtime/base/wire_writer.h"
#include "runtime/protocol/json/json.h"
#include "runtime/protocol/json/json_words.h"

namespace serin::protocol {
namespace {

namespace dom = simdjson::dom;

enum class Kind : uint8_t { kNone, kBytes, kFloats, kIntegers };  // as the oneof of Feature numbers them
constexpr std::string_view kKindNames[] = {"", "bytes_list", "float_list", "int64_list"};

/// The values of one feature, as they stand in its list.
class FeatureValues {
 public:
  FeatureValues(std::string_view name, bool number_words) : name_(name), number_words_(number_words) {}

  Status add(const dom::element& value) {
    if (const auto word = number_words_ ? number_word(value) : std::nullopt) return add_float(*word);
    switch (value.type()) {
      case dom::element_type::STRING: return add_bytes(value.get_string().value_unsafe());
      case dom::element_type::DOUBLE: return add_float(value.get_double().value_unsafe());
      case dom::element_type::INT64: return add_integer(value.get_int64().value_unsafe());
      case dom::element_type::BOOL: return add_integer(value.get_bool().value_unsafe() ? 1 : 0);
      case dom::element_type::OBJECT:
        if (is_base64(value)) {
          const auto bytes = decode_base64(value["b64"].get_string().value_unsafe());
          return bytes ? add_bytes(*bytes) : Status(refuse("has text that is not base64"));
        }
        break;
      default: break;
    }
    return refuse(fmt::format("has element with unexpected JSON type: {}", kind_of(value)));
  }

  void append_entry(std::string& out) const {
    std::string list = values_;
    if (kind_ != Kind::kBytes && kind_ != Kind::kNone) {
      list.clear();
      wire::write_bytes(list, 1, values_);  // packed
    }
    std::string feature;
    if (kind_ != Kind::kNone) wire::write_bytes(feature, static_cast<uint32_t>(kind_), list);
    std::string entry;
    wire::write_bytes(entry, 1, name_);
    wire::write_bytes(entry, 2, feature);
    wire::write_bytes(out, 1, entry);
  }

 private:
  Error refuse(std::string_view why) const { return {Code::kInvalidArgument, fmt::format("Feature: {} {}", name_.substr(0, 256), why)}; }
  Status take(Kind kind) {
    if (kind_ != Kind::kNone && kind_ != kind) return refuse(fmt::format("expecting type: {}", kKindNames[static_cast<size_t>(kind_)]));
    kind_ = kind;
    return {};
  }
  Status add_bytes(std::string_view bytes) {
    SERIN_CHECK(take(Kind::kBytes));
    wire::write_bytes(values_, 1, bytes);
    return {};
  }
  Status add_float(double number) {
    SERIN_CHECK(take(Kind::kFloats));
    const auto value = static_cast<float>(number);
    values_.append(reinterpret_cast<const char*>(&value), sizeof value);  // little-endian, like every supported machine
    return {};
  }
  Status add_integer(int64_t number) {
    SERIN_CHECK(take(Kind::kIntegers));
    wire::write_varint(values_, static_cast<uint64_t>(number));
    return {};
  }

  const std::string_view name_;
  const bool number_words_;
  Kind kind_ = Kind::kNone;
  std::string values_;
};

}  // namespace

Status append_example(std::string& out, const dom::element& example, bool number_words, std::string* feature) {
  dom::object features;
  if (example.get(features)) return invalid(fmt::format("Example must be JSON object but got JSON {}", kind_of(example)));
  std::string entries;
  for (const auto [name, value] : features) {
    if (feature) *feature = name;
    FeatureValues values(name, number_words);
    dom::array list;
    if (value.get(list)) {
      SERIN_CHECK(values.add(value));
    } else {
      for (const dom::element element : list) SERIN_CHECK(values.add(element));
    }
    values.append_entry(entries);
  }
  if (feature) feature->clear();
  wire::write_bytes(out, 1, entries);
  return {};
}

}  // namespace serin::protocol
