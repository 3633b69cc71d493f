#include "runtime/protocol/oip/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <ranges>
#include <utility>

#include "runtime/base/nearest_name.h"
#include "runtime/protocol/json/json.h"
#include "runtime/protocol/json/json_parameter.h"
#include "runtime/protocol/json/json_words.h"
#include "runtime/protocol/json/json_write.h"
#include "runtime/protocol/tensor/request_builder.h"

namespace serin::protocol {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view kId = "id", kParameters = "parameters", kModel = "model_name", kVersion = "model_version";
constexpr size_t kLongestShown = 256;  // of a name that is the client's

/// The shape that so many values have; nothing where there is none.
std::optional<Few<int64_t>> dims_for(const TensorSpec& spec, size_t values) {
  auto left = static_cast<int64_t>(values);
  if (!spec.ranked) return Few<int64_t>{left};
  Few<int64_t> dims(spec.shape.begin(), spec.shape.end());
  for (const int64_t dim : dims) {
    if (dim < 0) continue;
    if (dim == 0 || left % dim != 0) return std::nullopt;
    left /= dim;
  }
  for (int64_t& dim : dims | std::views::reverse)
    if (dim < 0) dim = std::exchange(left, 1);
  return left == 1 ? std::optional(dims) : std::nullopt;
}

class GenerateDecoder {
 public:
  GenerateDecoder(const Signature& signature, const RequestLimits& limits, std::string* field, InferRequest memory)
      : signature_(signature),
        limits_(limits),
        field_(field),
        builder_(signature, limits, std::move(memory)),
        slots_(signature.inputs.size()) {}
  Result<InferRequest> decode(std::string& body);

 private:
  struct Slot {
    std::string where;  ///< JSON pointer of the input
    dom::element value;
  };

  Error fail(std::string where, Error error) const {
    if (field_) *field_ = std::move(where);
    return error;
  }
  Error fail(std::string where, std::string message) const { return fail(std::move(where), Error{Code::kCorrupt, std::move(message)}); }
  Status at(const std::string& where, const Status& status) const { return status ? status : Status(fail(where, status.error())); }

  Status read_fields(const dom::object& fields, std::string_view under);
  Status read_id(const dom::element& value);
  Status read_parameter(std::string_view name, const dom::element& value, std::string where);
  Status read_input(std::string_view name, const dom::element& value, std::string where);
  Status check_all_given() const;
  Status read_values(size_t input);
  bool is_input(std::string_view name) const {
    return std::ranges::find(signature_.inputs, name, &TensorSpec::name) != signature_.inputs.end();
  }

  const Signature& signature_;
  const RequestLimits& limits_;
  std::string* field_;
  RequestBuilder builder_;
  Few<Slot> slots_;
  std::vector<std::string_view> parameters_;  // names of those that this server has no use for
  bool id_ = false;                           // was given
  bool marked_ = false;                       // the document: texts may be NaN or infinite
};

Result<InferRequest> GenerateDecoder::decode(std::string& body) {
  if (field_) field_->clear();
  SERIN_TRY(const Document document, parse_json(body, limits_.json_depth, body.size(), {.number_words = NumberWords::kAnywhere}));
  marked_ = document.marked;
  dom::object top;
  if (document.root.get(top)) return fail("", fmt::format("the request must be a JSON object, not {}", kind_of(document.root)));
  SERIN_CHECK(read_fields(top, ""));
  SERIN_CHECK(check_all_given());
  builder_.want_rest(/*binary=*/false);
  SERIN_CHECK(at("", builder_.allocate(body.size())));
  for (size_t i = 0; i < slots_.size(); ++i)
    if (builder_.is_given(i)) SERIN_CHECK(at(slots_[i].where, read_values(i)));
  return builder_.take();
}

/// `under`: what they stand under; at the top nothing.
Status GenerateDecoder::read_fields(const dom::object& fields, std::string_view under) {
  for (const auto [name, value] : fields) {
    std::string where = fmt::format("{}/{}", under, name.substr(0, kLongestShown));
    if (is_input(name)) {
      SERIN_CHECK(read_input(name, value, std::move(where)));
    } else if (under.empty() && name == kId) {
      SERIN_CHECK(read_id(value));
    } else if (under.empty() && name == kParameters) {
      dom::object inner;
      if (value.get(inner)) return fail(std::move(where), fmt::format("'{}' must be an object, not {}", kParameters, kind_of(value)));
      SERIN_CHECK(read_fields(inner, where));
    } else {
      SERIN_CHECK(read_parameter(name, value, std::move(where)));
    }
  }
  return {};
}

Status GenerateDecoder::read_id(const dom::element& value) {
  std::string_view id;
  if (std::exchange(id_, true)) return fail("/id", "key 'id' is given twice");
  if (value.get(id) || number_word(value)) return fail("/id", fmt::format("'id' must be a string, not {}", kind_of(value)));
  if (id.size() > limits_.id_bytes) return fail("/id", fmt::format("'id' is longer than {} bytes", limits_.id_bytes));
  builder_.request.id = id;
  return {};
}

Status GenerateDecoder::read_parameter(std::string_view name, const dom::element& value, std::string where) {
  if (value.is_array() || value.is_object() || value.is_null())
    return fail(std::move(where), invalid(fmt::format("{}, and a parameter is a text, a number, true or false, not {}",
                                                      builder_.begin_input(name).error().message, kind_of(value))));
  const bool word = marked_ && number_word(value);
  if (const Status set = builder_.set_parameter(name, word ? ParameterValue() : parameter_value(value)); !set)
    return fail(std::move(where), set.error());
  parameters_.push_back(name);
  return {};
}

Status GenerateDecoder::read_input(std::string_view name, const dom::element& value, std::string where) {
  const auto input = builder_.begin_input(name);
  if (!input) return fail(std::move(where), input.error());
  dom::array list;
  const bool bare = value.get(list);
  if (!bare && list.begin() != list.end() && (*list.begin()).is_array())
    return fail(std::move(where),
                invalid(fmt::format(
                    "input '{}': generate takes a value or a flat list of values; lists within lists, and shapes, are for infer", name)));
  const size_t values = bare ? 1 : count_of(list);
  const auto dims = dims_for(signature_.inputs[*input], values);
  if (!dims)
    return fail(std::move(where),
                builder_.bad_shape(*input, fmt::format("{} value{}", values, values == 1 ? "" : "s"), "they fill no such shape"));
  SERIN_CHECK(at(where, builder_.set_shape(*input, {dims->data(), dims->size()})));
  slots_[*input] = {std::move(where), value};
  return {};
}

/// A name that is mistyped has become a parameter.
Status GenerateDecoder::check_all_given() const {
  const TensorSpec* const missing = builder_.missing_input();
  if (missing == nullptr) return {};
  Error error = builder_.check_required_given().error();
  const auto meant = nearest_name(missing->name, parameters_);
  if (!meant.empty()) error.message += fmt::format("; did you mean it by '{}', which is a parameter?", meant);
  return fail("", std::move(error));
}

Status GenerateDecoder::read_values(size_t input) {
  TensorView tensor = builder_.request.inputs[input];
  const dom::element& value = slots_[input].value;
  tensor.shape = value.is_array() ? Shape{tensor.elements()} : Shape{};
  return read_value(value, tensor, signature_.inputs[input].name, {.number_words = marked_});
}

}  // namespace

Result<InferRequest> decode_generate_request(std::string& body, const Signature& signature, std::string* field, const RequestLimits& limits,
                                             InferRequest memory) {
  return GenerateDecoder(signature, limits, field, std::move(memory)).decode(body);
}

std::string encode_generate_response(const InferResponse& response, std::string memory) {
  std::string out = std::move(memory);
  out.clear();
  append_string(out += R"({"model_name":)", response.model);
  append_string(out += R"(,"model_version":)", response.version);
  if (!response.id.empty()) append_string(out += R"(,"id":)", response.id);
  for (const NamedTensor& named : response.outputs) {
    if (named.name == kModel || named.name == kVersion || (named.name == kId && !response.id.empty())) continue;
    append_string(out += ',', named.name);
    const bool bare = named.tensor.elements() == 1;
    out += bare ? ":" : ":[";
    append_elements(out, named.tensor, 0, named.tensor.elements());
    if (!bare) out += ']';
  }
  return out += '}';
}

std::string as_event(std::string_view json) { return fmt::format("data: {}\n\n", json); }

}  // namespace serin::protocol
