// tfserving_encode.cc: encodes tensors as the JSON of TensorFlow Serving. Lists are nested as the shape is, and whole floats have a point.
// Bytes are {"b64": ..} where the name of an output says that they are bytes.

#include <fmt/format.h>

#include "runtime/base/base64.h"
#include "runtime/protocol/json/json_write.h"
#include "runtime/protocol/tensorflow/tfserving_rest.h"

namespace serin::protocol {
namespace {

bool is_bytes(const NamedTensor& named) { return named.tensor.dtype == DType::kString && named.name.ends_with("_bytes"); }

void append_bytes(std::string& out, const TensorView& tensor, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; ++i) {
    if (i > first) out += ',';
    ((out += R"({"b64":")") += encode_base64(tensor.as<const std::string>()[i])) += R"("})";
  }
}

/// The so many elements that lie below `axis`, from `first` on.
void append_value(std::string& out, const NamedTensor& named, size_t axis, int64_t first, int64_t elements) {
  append_nested(out, named.tensor.shape, axis, first, elements, [&](int64_t from, int64_t to) {
    is_bytes(named) ? append_bytes(out, named.tensor, from, to) : append_elements(out, named.tensor, from, to);
  });
}

/// {"name": value, ..}, or the value alone of an only one.
template <class AppendValue>
void append_named(std::string& out, std::span<const NamedTensor> outputs, const AppendValue& append) {
  if (outputs.size() == 1) return append(outputs.front());
  out += '{';
  for (const NamedTensor& named : outputs) {
    if (out.back() != '{') out += ',';
    append_string(out, named.name);
    out += ':';
    append(named);
  }
  out += '}';
}

Result<int64_t> rows_of(std::span<const NamedTensor> outputs) {
  const auto refuse = [](const NamedTensor& named, std::string_view why) {
    return Error{Code::kInvalidArgument,
                 fmt::format("Tensor name: {} {}: it cannot be written in rows, ask in columns ('inputs' in place of 'instances')",
                             named.name, why)};
  };
  for (const NamedTensor& named : outputs) {
    if (named.tensor.shape.rank() == 0) return refuse(named, "has no shape information");
    const int64_t rows = named.tensor.shape[0], expected = outputs.front().tensor.shape[0];
    if (rows != expected) return refuse(named, fmt::format("has inconsistent batch size: {} expecting: {}", rows, expected));
  }
  return outputs.front().tensor.shape[0];
}

std::string begin_object(std::string_view key, std::span<const NamedTensor> outputs) {
  size_t bytes = 64;
  for (const NamedTensor& named : outputs) bytes += 64 + static_cast<size_t>(named.tensor.elements()) * 13;
  std::string out;
  out.reserve(bytes);
  append_string(out += '{', key);
  return out += ':';
}

}  // namespace

Result<std::string> encode_tf_predict(std::string_view key, std::span<const NamedTensor> outputs, bool rows) {
  std::string out = begin_object(key, outputs);
  if (!rows) {
    append_named(out, outputs, [&](const NamedTensor& named) { append_value(out, named, 0, 0, named.tensor.elements()); });
    return out += '}';
  }
  SERIN_TRY(const int64_t count, rows_of(outputs));
  out += '[';
  for (int64_t row = 0; row < count; ++row) {
    if (row > 0) out += ',';
    append_named(out, outputs, [&](const NamedTensor& named) {
      const int64_t elements = named.tensor.elements() / count;
      append_value(out, named, 1, row * elements, elements);
    });
  }
  return out += "]}";
}

Result<std::string> encode_tf_results(TfMethod method, std::span<const NamedTensor> outputs) {
  SERIN_TRY(const Scores scores, read_scores(method, outputs));
  std::string out = begin_object("results", outputs) + '[';
  for (int64_t row = 0; row < scores.rows; ++row) {
    if (row > 0) out += ',';
    if (method == TfMethod::kRegress) {
      append_elements(out, *scores.values, row, row + 1);
      continue;
    }
    out += '[';
    for (int64_t i = 0; i < scores.classes; ++i) {
      out += i == 0 ? "[" : ",[";
      append_text(out, scores.label(row, i));
      out += ',';
      append_elements(out, *scores.values, row * scores.classes + i, row * scores.classes + i + 1);
      out += ']';
    }
    out += ']';
  }
  return out += "]}";
}

}  // namespace serin::protocol
