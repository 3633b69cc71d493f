// json_document.h: a JSON file as values that are read where they stand.
//
//   SERIN_TRY(const JsonDocument document, JsonDocument::parse(std::move(text)));
//   for (const Json& node : document.root()["nodes"].items())
//     if (const auto name = node["name"].text()) ...
//
// Models have millions of numbers, so a value takes 16 bytes in addition to the text, and a number is converted, exactly, when it is asked for. Beyond
// RFC 8259, NaN, Infinity and -Infinity are numbers, because Python writes them. A key that occurs twice in an object is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/base/result.h"

namespace serin::formats {

class Json;

class JsonDocument {
 public:
  static constexpr int kNesting = 128;

  /// kCorrupt, with a byte offset: no JSON, not UTF-8, a repeated key, nested deeper than kNesting. kTooLarge: 4 GiB and more.
  static Result<JsonDocument> parse(std::string text);
  /// The text and its values live as long as a Json of it is used by the caller; a Json refers to the document.
  Json root() const;

 private:
  friend class Json;
  friend class JsonParser;
  enum class Kind : uint8_t { kAbsent, kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };

  struct Value {
    uint32_t begin = 0;  ///< in the text; a string starts behind its quote
    uint32_t size = 0;   ///< bytes of a number or string; elements of an array or object
    uint32_t next = 0;   ///< the value behind this one and all that is in it
    Kind kind = Kind::kAbsent;
    bool escaped = false;
  };

  struct Content {
    std::string text;
    std::vector<Value> values;  ///< in the order of the text; a key comes before its value
  };

  std::shared_ptr<const Content> content_;
};

/// A value of a document, or none: then all questions have no answer.
class Json {
 public:
  Json() = default;

  explicit operator bool() const { return kind() != Kind::kAbsent; }
  bool is_null() const { return kind() == Kind::kNull; }
  bool is_array() const { return kind() == Kind::kArray; }
  bool is_object() const { return kind() == Kind::kObject; }
  bool is_number() const { return kind() == Kind::kNumber; }
  bool is_text() const { return kind() == Kind::kString; }

  std::optional<std::string> text() const;
  std::string text_or(std::string_view fallback) const { return text().value_or(std::string(fallback)); }
  std::optional<bool> boolean() const;
  std::optional<int64_t> integer() const;  ///< nothing for 1.5, and for 1e3
  std::optional<double> number() const;    ///< infinite if it exceeds a double
  std::optional<float> number_f32() const;
  /// The characters of a number.
  std::string_view digits() const;

  size_t size() const { return is_array() || is_object() ? value().size : 0; }
  /// The value of a key; none if there is no such key, or this is no object.
  Json operator[](std::string_view key) const;

  struct Member;
  template <class Element>
  class Range;
  Range<Json> items() const;      ///< of an array; of anything else none
  Range<Member> members() const;  ///< of an object

 private:
  friend class JsonDocument;
  using Kind = JsonDocument::Kind;
  using Value = JsonDocument::Value;

  Json(const JsonDocument::Content* content, uint32_t index) : content_(content), index_(index) {}
  Kind kind() const { return content_ ? content_->values[index_].kind : Kind::kAbsent; }
  const Value& value() const { return content_->values[index_]; }
  std::string_view raw() const { return std::string_view(content_->text).substr(value().begin, value().size); }

  const JsonDocument::Content* content_ = nullptr;
  uint32_t index_ = 0;
};

struct Json::Member {
  std::string key;
  Json value;
};

template <class Element>
class Json::Range {
 public:
  struct Iterator {
    const JsonDocument::Content* content;
    uint32_t at;

    Element operator*() const {
      const Json here(content, at);
      if constexpr (std::is_same_v<Element, Json>)
        return here;
      else
        return {*here.text(), Json(content, at + 1)};
    }
    Iterator& operator++() {
      at = content->values[std::is_same_v<Element, Json> ? at : at + 1].next;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at == other.at; }
  };

  Iterator begin() const { return {content_, first_}; }
  Iterator end() const { return {content_, end_}; }

 private:
  friend class Json;
  Range(const JsonDocument::Content* content, uint32_t first, uint32_t end) : content_(content), first_(first), end_(end) {}

  const JsonDocument::Content* content_;
  uint32_t first_, end_;
};

inline Json::Range<Json> Json::items() const {
  return is_array() ? Range<Json>(content_, index_ + 1, value().next) : Range<Json>(content_, 0, 0);
}

inline Json::Range<Json::Member> Json::members() const {
  return is_object() ? Range<Member>(content_, index_ + 1, value().next) : Range<Member>(content_, 0, 0);
}

}  // namespace serin::formats
