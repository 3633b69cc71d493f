// request_builder.cc: checks a request's inputs and outputs, in the order in which a reader of the request meets the faults. Where
// tritonclient's tests know a sentence for a fault, that sentence is used.

#include "runtime/protocol/tensor/request_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/protocol/tensor/datatype.h"
#include "runtime/protocol/tensor/tensor_names.h"

namespace serin::protocol {
namespace {

constexpr size_t kLongestShown = 256;       // of a name that is none
constexpr size_t kLongestSequenceId = 128;  // as Triton has it

/// What an element takes in memory, apart from the bytes of a long string, which the body's limit bounds.
size_t element_bytes(DType dtype) { return dtype == DType::kString ? sizeof(std::string) : std::max<size_t>(dtype_size(dtype), 1); }

/// Not negative.
std::optional<uint64_t> whole_number(const ParameterValue& value) {
  if (const auto* number = std::get_if<uint64_t>(&value)) return *number;
  const auto* number = std::get_if<int64_t>(&value);
  return number && *number >= 0 ? std::optional(static_cast<uint64_t>(*number)) : std::nullopt;
}

}  // namespace

bool may_fill(const TensorView& tensor, size_t request_bytes) {
  const auto elements = static_cast<size_t>(tensor.elements());
  return elements <= request_bytes || elements * element_bytes(tensor.dtype) <= kMostFilled;
}

void trim(AlignedBuffer& memory, std::vector<std::vector<std::string>>& texts) {
  if (memory.size() > kMostRecycledBytes) memory = AlignedBuffer();
  size_t held = 0;
  for (const auto& list : texts) {
    held += list.capacity() * sizeof(std::string);
    for (const std::string& text : list) held += text.capacity();
  }
  if (held > kMostRecycledBytes) texts.clear();
}

void InferRequest::clear() {
  id.clear();
  inputs.clear();
  trim(memory, texts);
  share.release();
  outputs.clear();
  timeout_us = 0;
  priority = 0;
  sequence.clear();
}

RequestBuilder::RequestBuilder(const Signature& signature, const RequestLimits& limits, InferRequest memory)
    : request(std::move(memory)), signature_(signature), limits_(limits) {
  request.clear();
  request.inputs.resize(signature.inputs.size());  // of no type: not given yet
}

Status RequestBuilder::set_parameter(std::string_view name, const ParameterValue& value) {
  const auto must_be = [name](std::string_view what) { return invalid(fmt::format("parameter '{}' must be {}", name, what)); };
  if (name == "timeout") {
    const auto microseconds = whole_number(value);
    if (!microseconds || !std::in_range<int64_t>(*microseconds)) return must_be("a whole number of microseconds, not negative");
    request.timeout_us = static_cast<int64_t>(*microseconds);
  } else if (name == "priority") {
    const auto priority = whole_number(value);
    if (!priority) return must_be("a whole number, not negative: 1 goes first, 0 is the model's own default");
    request.priority = *priority;
  } else if (name == "sequence_id") {
    request.sequence.number = whole_number(value).value_or(0);
    const auto* text = std::get_if<std::string_view>(&value);
    if (!text && !whole_number(value)) return must_be("a whole number, not negative, or a string");
    if (text && text->size() > kLongestSequenceId)
      return Error{Code::kUnsupported, fmt::format("parameter 'sequence_id' must be no longer than {} bytes", kLongestSequenceId)};
    request.sequence.name = text ? *text : std::string_view();
  } else if (name == "sequence_start" || name == "sequence_end") {
    const auto* flag = std::get_if<bool>(&value);
    if (!flag) return must_be("true or false");
    (name == "sequence_start" ? request.sequence.start : request.sequence.end) = *flag;
  }
  return {};
}

Result<size_t> RequestBuilder::begin_input(std::string_view name) {
  const auto found = std::ranges::find(signature_.inputs, name, &TensorSpec::name);
  if (found == signature_.inputs.end())
    return invalid(fmt::format("unexpected inference input '{}' for {}{}", name.substr(0, kLongestShown), signature_.model,
                               names_instead_of(name, signature_.inputs)));
  const auto index = static_cast<size_t>(found - signature_.inputs.begin());
  if (is_given(index)) return invalid(fmt::format("input '{}' is given twice", name));
  request.inputs[index].dtype = found->dtype;
  return index;
}

Status RequestBuilder::set_datatype(size_t input, std::string_view datatype) {
  const auto dtype = parse_oip_datatype(datatype);
  if (!dtype) {
    const std::string_view meant = nearest_oip_datatype(datatype), wanted = oip_datatype(spec(input).dtype);
    return invalid(fmt::format("input '{}': unknown datatype '{}'{}, {} expects '{}'", spec(input).name, datatype.substr(0, 32),
                               meant.empty() || meant == wanted ? "" : fmt::format(" (did you mean '{}'?)", meant), signature_.model,
                               wanted));
  }
  if (*dtype != spec(input).dtype)
    return invalid(fmt::format("inference input '{}' data-type is '{}', but {} expects '{}'", spec(input).name, datatype, signature_.model,
                               oip_datatype(spec(input).dtype)));
  return {};
}

Error RequestBuilder::bad_shape(size_t input, std::string_view shown, std::string_view why) const {
  return invalid(fmt::format("{}: input '{}' expects {} {}, the request has {}{}{}", signature_.model, spec(input).name,
                             spec(input).shape.str(), oip_datatype(spec(input).dtype), shown, why.empty() ? "" : ": ", why));
}

Status RequestBuilder::set_shape(size_t input, std::span<const int64_t> dims) {
  const auto refuse = [&](std::string_view why) {
    return bad_shape(input, fmt::format("[{}]", fmt::join(dims.first(std::min<size_t>(dims.size(), 32)), ",")), why);
  };
  const TensorSpec& wanted = spec(input);
  if (wanted.ranked && dims.size() != wanted.shape.rank()) return refuse("");
  if (!Shape::fits(dims.size())) return refuse("too many dimensions");
  Shape& shape = request.inputs[input].shape;
  Shape counted;  // what is empty is as large as its other sizes: a model may keep those
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] < 0) return refuse("a dimension is negative");
    if (wanted.ranked && wanted.shape[axis] >= 0 && dims[axis] != wanted.shape[axis])
      return refuse(axis == 0 ? how_to_open_batch(signature_).value_or("") : "");
    shape.push_back(dims[axis]);
    counted.push_back(std::max<int64_t>(dims[axis], 1));
  }
  const auto elements = counted.checked_elements();
  if (!elements || static_cast<uint64_t>(*elements) > limits_.tensor_bytes / element_bytes(wanted.dtype))
    return Error{Code::kTooLarge,
                 fmt::format("input '{}': shape {} is over the limit of {} bytes", wanted.name, shape.str(), limits_.tensor_bytes)};
  return {};
}

Status RequestBuilder::want(std::string_view name, WantedOutput how) {
  const auto found = std::ranges::find(signature_.outputs, name, &TensorSpec::name);
  if (found == signature_.outputs.end())
    return invalid(fmt::format("unexpected inference output '{}' for {}{}", name.substr(0, kLongestShown), signature_.model,
                               names_instead_of(name, signature_.outputs)));
  how.index = static_cast<size_t>(found - signature_.outputs.begin());
  if (std::ranges::find(request.outputs, how.index, &WantedOutput::index) != request.outputs.end())
    return invalid(fmt::format("output '{}' is asked for twice", name));
  if (how.classes != 0 && found->dtype == DType::kString) return invalid(fmt::format("output '{}' is BYTES, which has no classes", name));
  request.outputs.push_back(how);
  return {};
}

void RequestBuilder::want_rest(bool binary) {
  if (!request.outputs.empty()) return;
  for (size_t i = 0; i < signature_.outputs.size(); ++i) request.outputs.push_back({.index = i, .binary = binary});
}

Status RequestBuilder::check_all_given() const { return check_given(/*may_leave_out=*/false); }
Status RequestBuilder::check_required_given() const { return check_given(/*may_leave_out=*/true); }

const TensorSpec* RequestBuilder::first_missing(bool may_leave_out) const {
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (!is_given(i) && !(may_leave_out && spec(i).standard)) return &spec(i);
  return nullptr;
}

Status RequestBuilder::check_given(bool may_leave_out) const {
  const TensorSpec* const missing = first_missing(may_leave_out);
  if (missing == nullptr) return {};
  size_t needed = 0, given = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    given += is_given(i) ? 1 : 0;
    needed += is_given(i) || !may_leave_out || !spec(i).standard ? 1 : 0;
  }
  return invalid(
      fmt::format("expected {} inputs but got {} inputs for {}: input '{}' is missing", needed, given, signature_.model, missing->name));
}

InferRequest RequestBuilder::take() {
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (!is_given(i)) request.inputs[i] = *spec(i).standard;
  return std::move(request);
}

Status RequestBuilder::allocate(size_t text_bytes) {
  size_t total = 0, texts = 0;
  for (const TensorView& input : request.inputs) {
    total += AlignedBuffer::rounded_up(input.bytes());
    if (input.dtype == DType::kString) texts += static_cast<size_t>(input.elements()) * sizeof(std::string);
    if (total + texts > limits_.tensor_bytes)
      return Error{Code::kTooLarge, fmt::format("the inputs are over the limit of {} bytes", limits_.tensor_bytes)};
  }
  total = std::max<size_t>(total, 1);  // what is empty has a place, too
  SERIN_CHECK(take_share(total + (texts > 0 ? texts + text_bytes : 0)));
  if (request.memory.size() < total) request.memory = AlignedBuffer(total);
  if (texts > 0) request.texts.resize(request.inputs.size());
  size_t offset = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    TensorView& input = request.inputs[i];
    input.data = request.memory.data() + offset;
    offset += AlignedBuffer::rounded_up(input.bytes());
    if (input.dtype != DType::kString || texts == 0) continue;
    request.texts[i].resize(static_cast<size_t>(input.elements()));
    input.data = request.texts[i].data();
  }
  return {};
}

Status RequestBuilder::take_share(size_t bytes) {
  if (request.share.resize(limits_.memory, bytes)) return {};
  if (bytes > limits_.memory->most())
    return Error{Code::kTooLarge, fmt::format("the inputs take {} bytes, over the limit of {}", bytes, limits_.memory->most())};
  return Error{Code::kOverloaded, "the inputs of too many large requests are in memory; try again"};
}

std::optional<std::string> how_to_open_batch(const Signature& signature) {
  const auto is_single = [](const TensorSpec& input) { return input.ranked && input.shape.rank() >= 2 && input.shape[0] == 1; };
  if (signature.inputs.empty() || !std::ranges::all_of(signature.inputs, is_single)) return std::nullopt;
  constexpr size_t kMostShown = 4;
  std::string open;
  for (size_t i = 0; i < std::min(signature.inputs.size(), kMostShown); ++i)
    open += fmt::format("{}'{}': {{0: 'batch'}}", i == 0 ? "" : ", ", signature.inputs[i].name);
  return fmt::format("it was exported with a batch of 1; torch.onnx.export(..., dynamic_shapes={{{}{}}}) leaves the batch open", open,
                     signature.inputs.size() > kMostShown ? ", ..." : "");
}

}  // namespace serin::protocol
