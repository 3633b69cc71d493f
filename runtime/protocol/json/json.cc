// json.cc: parses JSON, with one parser for each thread (and one for each large document), and reads tensors element by element with range
// checks.

#include "runtime/protocol/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "kernels/float16.h"
#include "runtime/base/base64.h"
#include "runtime/protocol/json/json_error.h"
#include "runtime/protocol/json/json_words.h"
#include "runtime/protocol/json/wide_integers.h"
#include "runtime/protocol/tensor/datatype.h"

namespace serin::protocol {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kLargestKept = size_t{4} << 20;

dom::parser& thread_parser() {
  thread_local dom::parser parser;
  return parser;
}

class DataReader {
 public:
  DataReader(const TensorView& tensor, std::string_view name, const ElementRules& rules)
      : tensor_(tensor), name_(name), rules_(rules), size_(tensor.elements()) {}

  Status read(const dom::array& data) {
    const bool flat = tensor_.shape.rank() <= 1 || (rules_.flat && (data.size() == 0 || !data.at(0).is_array()));
    SERIN_CHECK(flat ? read_flat(data) : read_nested(data, 0));
    if (done_ != size_) return short_or_long(done_);
    return {};
  }
  Status read_value(const dom::element& value) {
    dom::array list;
    if (tensor_.shape.rank() == 0) return store(value);
    if (value.get(list))
      return Error{Code::kCorrupt,
                   fmt::format("input '{}': expected a list of shape {}, found {}", name_, tensor_.shape.str(), kind_of(value))};
    return read(list);
  }

 private:
  Error short_or_long(int64_t count) const {
    return Error{Code::kCorrupt,
                 fmt::format("input '{}': shape {} takes {} elements, data has {}", name_, tensor_.shape.str(), size_, count)};
  }

  Status read_flat(const dom::array& data) {
    int64_t count = 0;
    for (const dom::element element : data) {
      if (count++ < size_) SERIN_CHECK(store(element));
    }
    if (count != size_) return short_or_long(count);
    return {};
  }

  // At most as deep as the shape's rank: the recursion ends there whatever the client nested.
  Status read_nested(const dom::array& data, size_t axis) {
    int64_t count = 0;
    const bool last = axis + 1 == tensor_.shape.rank();
    for (const dom::element element : data) {
      if (++count > tensor_.shape[axis]) break;
      if (last) {
        SERIN_CHECK(store(element));
        continue;
      }
      dom::array inner;
      if (element.get(inner))
        return Error{Code::kCorrupt, fmt::format("input '{}': data is nested unevenly: expected a list at depth {}, found {}", name_,
                                                 axis + 2, kind_of(element))};
      SERIN_CHECK(read_nested(inner, axis + 1));
    }
    if (count != tensor_.shape[axis])
      return Error{Code::kCorrupt,
                   fmt::format("input '{}': a list at depth {} has {} elements, shape {} has {} there", name_, axis + 1,
                               count > tensor_.shape[axis] ? "more" : std::to_string(count), tensor_.shape.str(), tensor_.shape[axis])};
    return {};
  }

  Status store(const dom::element& element) {
    switch (tensor_.dtype) {
      // From the middle between the largest number and the next power of two on, a value rounds to infinity.
      case DType::kFloat32: return store_real<float>(element, 0x1.ffffffp127, [](double value) { return static_cast<float>(value); });
      case DType::kFloat64: return store_real<double>(element, HUGE_VAL, [](double value) { return value; });
      case DType::kFloat16: return store_real<kernels::Half>(element, 65520, [](double value) { return kernels::to_half(value); });
      case DType::kBFloat16:
        return store_real<kernels::BFloat16>(element, 0x1.ffp127, [](double value) { return kernels::to_bfloat16(value); });
      case DType::kInt8: return store_integer<int8_t>(element);
      case DType::kInt16: return store_integer<int16_t>(element);
      case DType::kInt32: return store_integer<int32_t>(element);
      case DType::kInt64: return store_integer<int64_t>(element);
      case DType::kUInt8: return store_integer<uint8_t>(element);
      case DType::kUInt16: return store_integer<uint16_t>(element);
      case DType::kUInt32: return store_integer<uint32_t>(element);
      case DType::kUInt64: return store_integer<uint64_t>(element);
      case DType::kBool: return store_bool(element);
      case DType::kString: return store_text(element);
      default: return Error{Code::kUnsupported, fmt::format("input '{}': {} as JSON is not supported", name_, oip_datatype(tensor_.dtype))};
    }
  }

  std::optional<double> word_of(const dom::element& element) const { return rules_.number_words ? number_word(element) : std::nullopt; }

  Error bad(const dom::element& element) const {
    const std::string shown = element.is_number() ? std::string(simdjson::minify(element))
                              : word_of(element)  ? "NaN or infinite"
                                                  : std::string(kind_of(element));
    return Error{Code::kCorrupt,
                 fmt::format("input '{}': element {} is {}, which is not {}", name_, done_, shown, with_article(tensor_.dtype))};
  }

  template <class T, class Round>
  Status store_real(const dom::element& element, double limit, const Round& round) {
    double value = 0;
    if (element.get(value)) {  // integers convert
      const auto word = word_of(element);
      if (!word) return bad(element);
      value = *word;
    } else if (std::abs(value) >= limit && !rules_.round_to_infinity) {
      return bad(element);
    }
    tensor_.as<T>()[done_++] = round(value);
    return {};
  }
  template <class T>
  Status store_integer(const dom::element& element) {
    int64_t narrow = 0;
    uint64_t wide = 0;
    if (!element.get(narrow) && std::in_range<T>(narrow))
      tensor_.as<T>()[done_++] = static_cast<T>(narrow);
    else if (!element.get(wide) && std::in_range<T>(wide))
      tensor_.as<T>()[done_++] = static_cast<T>(wide);
    else
      return bad(element);
    return {};
  }
  Status store_bool(const dom::element& element) {
    bool value = false;
    int64_t number = 0;
    if (!element.get(number) && (number == 0 || number == 1))
      value = number == 1;
    else if (element.get(value))
      return bad(element);
    tensor_.as<bool>()[done_++] = value;
    return {};
  }

  Status store_text(const dom::element& element) {
    std::string_view text;
    std::string& place = tensor_.as<std::string>()[done_];
    if (rules_.base64 && is_base64(element)) {
      auto bytes = decode_base64(element["b64"].get_string().value_unsafe());
      if (!bytes) return Error{Code::kCorrupt, fmt::format("input '{}': element {} is no base64", name_, done_)};
      place = std::move(*bytes);
    } else if (element.get(text) || word_of(element)) {
      return bad(element);
    } else {
      place = text;
    }
    ++done_;
    return {};
  }

  const TensorView& tensor_;
  std::string_view name_;
  ElementRules rules_;
  int64_t size_;
  int64_t done_ = 0;
};

}  // namespace

Result<Document> parse_json(std::string& body, size_t depth, size_t bytes, const JsonStyle& style) {
  bytes = std::min(bytes, body.size());
  if (bytes == 0) return Error{Code::kCorrupt, fmt::format("{}: The document is empty. at 0", style.complaint)};
  Document document;
  if (bytes > kLargestKept) document.large = std::make_unique<dom::parser>();
  dom::parser& parser = document.large ? *document.large : thread_parser();
  if (bytes > parser.capacity() || parser.max_depth() != depth) {
    if (parser.allocate(std::max<size_t>(bytes, 4096), depth)) return Error{Code::kTooLarge, "the request is too large to parse"};
  }
  body.reserve(bytes + simdjson::SIMDJSON_PADDING);
  const auto parse = [&] { return parser.parse(reinterpret_cast<const uint8_t*>(body.data()), bytes, false).get(document.root); };
  auto error = parse();
  const bool words = style.number_words != NumberWords::kNowhere, in_lists = style.number_words == NumberWords::kInLists;
  if (error && words && mark_number_words(std::span(body).first(bytes), in_lists)) {
    document.marked = true;
    error = parse();
  }
  if (error == simdjson::NUMBER_ERROR && round_wide_integers(std::span(body).first(bytes))) error = parse();
  if (!error) return document;
  if (error == simdjson::DEPTH_ERROR) return Error{Code::kCorrupt, fmt::format("the request JSON is nested deeper than {} levels", depth)};
  return Error{Code::kCorrupt,
               fmt::format("{}: {}", style.complaint,
                           explain_json_error(std::string_view(body).substr(0, bytes)).value_or(simdjson::error_message(error)))};
}

std::string_view kind_of(const dom::element& element) {
  switch (element.type()) {
    case dom::element_type::ARRAY: return "an array";
    case dom::element_type::OBJECT: return "an object";
    case dom::element_type::STRING: return "a string";
    case dom::element_type::BOOL: return "true or false";
    case dom::element_type::NULL_VALUE: return "null";
    default: return "a number";
  }
}

Status read_elements(const dom::array& data, const TensorView& tensor, std::string_view name, const ElementRules& rules) {
  return DataReader(tensor, name, rules).read(data);
}

Status read_value(const dom::element& value, const TensorView& tensor, std::string_view name, const ElementRules& rules) {
  return DataReader(tensor, name, rules).read_value(value);
}

size_t count_of(const dom::array& list) {
  constexpr size_t kMostCounted = 0xFFFFFF;
  const size_t size = list.size();
  return size < kMostCounted ? size : static_cast<size_t>(std::distance(list.begin(), list.end()));
}

bool is_base64(const dom::element& value) {
  dom::object object;
  return !value.get(object) && object.size() == 1 && object["b64"].is_string();
}

}  // namespace serin::protocol
