// tfserving_grpc_examples.cc: decodes the examples of gRPC requests into tensors. tensorflow.Example is a map from names to lists of
// floats, integers or bytes. Each is read twice and never kept: once to count it, once into its row.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/element_type.h"
#include "runtime/protocol/tensor/datatype.h"
#include "runtime/protocol/tensor/request_builder.h"
#include "runtime/protocol/tensor/tensor_names.h"
#include "runtime/protocol/tensorflow/tfserving_grpc.h"

namespace serin::protocol {
namespace {

using wire::Bytes;
using wire::Decoding;
using wire::Message;

struct Feature {
  enum class Kind : uint8_t { kNone, kBytes, kFloats, kIntegers };  // as the oneof numbers them
  std::string_view name;
  Kind kind = Kind::kNone;
  Bytes list;
};

Feature read_feature(Decoding& decoding, Bytes entry) {
  Feature feature;
  Message in(decoding, "feature", entry);
  while (in.next()) {
    if (in.field() == 1) feature.name = in.text();
    if (in.field() != 2) continue;
    Message value = in.message("Feature");
    while (value.next()) {
      if (value.field() < 1 || value.field() > 3) continue;
      feature.kind = static_cast<Feature::Kind>(value.field());
      feature.list = value.bytes();
    }
  }
  return feature;
}

/// use(element) for each; of bytes, texts.
template <class Use>
void each_value(Decoding& decoding, const Feature& feature, const Use& use) {
  Message in(decoding, "list", feature.list);
  while (in.next()) {
    if (in.field() != 1) continue;
    if (feature.kind == Feature::Kind::kBytes) use(in.chars());
    if (feature.kind == Feature::Kind::kFloats) in.each_fixed<float>(use);
    if (feature.kind == Feature::Kind::kIntegers) in.each_integer(use);
  }
}

int64_t count_values(Decoding& decoding, const Feature& feature) {
  int64_t count = 0;
  each_value(decoding, feature, [&](const auto&) { ++count; });
  return count;
}

/// Whether the value fits a place of type T.
template <class T, class Value>
bool store(T& place, const Value& value) {
  if constexpr (std::is_same_v<Value, std::string_view> || std::is_same_v<T, std::string>) {
    if constexpr (std::is_same_v<Value, std::string_view> && std::is_same_v<T, std::string>) {
      place = value;
      return true;
    }
    return false;
  } else if constexpr (std::is_same_v<T, kernels::Half>) {
    place = kernels::to_half(static_cast<double>(value));
    return true;
  } else if constexpr (std::is_same_v<T, kernels::BFloat16>) {
    place = kernels::to_bfloat16(static_cast<double>(value));
    return true;
  } else if constexpr (std::is_floating_point_v<T>) {
    place = static_cast<T>(value);
    return true;
  } else if constexpr (std::is_same_v<Value, int64_t>) {
    if constexpr (std::is_same_v<T, bool>) {
      if (value != 0 && value != 1) return false;
    } else if (!std::in_range<T>(value)) {
      return false;
    }
    place = static_cast<T>(value);
    return true;
  } else {
    return false;  // floats are no integers
  }
}

template <class Use>
void with_type(DType dtype, const Use& use) {
  if (dtype == DType::kString) return use(std::string{});
  kernels::visit_dtype(dtype, [&]<class T>(kernels::Element<T>) {
    if constexpr (!std::is_void_v<T>) use(T{});
  });
}

class Examples {
 public:
  Examples(const Signature& signature, const RequestLimits& limits, const std::byte* begin)
      : signature_(signature), limits_(limits), builder_(signature, limits), decoding_{.begin = begin}, common_(signature.inputs.size()) {}

  Result<InferRequest> decode(Bytes input, const std::vector<TfTask>& tasks) {
    for (const TfTask& task : tasks) SERIN_CHECK(want(task));
    SERIN_CHECK(parses_examples(signature_) ? read_serialized(input) : read_input(input));
    return std::move(builder_.request);
  }

 private:
  using Row = std::vector<Feature>;  // by input

  Status want(const TfTask& task) {
    SERIN_TRY(const std::vector<size_t> outputs, scored_outputs(task.method, signature_));
    auto& wanted = builder_.request.outputs;
    for (const size_t output : outputs)
      if (std::ranges::find(wanted, output, &WantedOutput::index) == wanted.end()) wanted.push_back({.index = output, .binary = true});
    return {};
  }

  Status malformed() const {
    return decoding_.error ? Status(invalid("the Input of the message is malformed: " + decoding_.error->message)) : Status();
  }

  /// An ExampleList, or one with a context.
  Bytes list_in(Bytes input) {
    Bytes list;
    input_bytes_ = input.size();
    Message in(decoding_, "Input", input);
    while (in.next())
      if (in.field() == 1 || in.field() == 2) list = in.bytes();
    return list;
  }

  /// Two messages one after the other are one with the fields of both, in which the later feature of a name counts: the context goes first.
  Status read_serialized(Bytes input) {
    const Bytes list = list_in(input);
    int64_t rows = 0;
    std::string_view context;
    Message counted(decoding_, "ExampleList", list);
    while (counted.next()) {
      if (counted.field() == 1) ++rows;
      if (counted.field() == 2) context = counted.chars();
    }
    SERIN_CHECK(malformed());
    if (rows == 0) return invalid("Input is empty");
    if (context.size() > limits_.tensor_bytes / static_cast<size_t>(rows)) return too_much_context(limits_);
    SERIN_CHECK(builder_.begin_input(signature_.inputs.front().name));
    builder_.request.inputs.front().dtype = DType::kString;
    SERIN_CHECK(builder_.set_shape(0, std::array{rows}));
    SERIN_CHECK(builder_.allocate(input_bytes_ + context.size() * static_cast<size_t>(rows)));
    auto* row = builder_.request.inputs.front().as<std::string>();
    Message examples(decoding_, "ExampleList", list);
    while (examples.next())
      if (examples.field() == 1) (*row = context) += examples.chars(), ++row;
    return malformed();
  }

  Status read_input(Bytes input) {
    const Bytes list = list_in(input);
    int64_t rows = 0;
    Message counted(decoding_, "ExampleList", list);
    while (counted.next()) {
      if (counted.field() == 1) ++rows;
      if (counted.field() == 2) SERIN_CHECK(read_example(counted.bytes(), "the context", common_));
    }
    SERIN_CHECK(malformed());
    if (rows == 0) return invalid("Input is empty");
    SERIN_CHECK(check_repeated(rows));
    int64_t row = 0;
    Message examples(decoding_, "ExampleList", list);
    while (examples.next())
      if (examples.field() == 1) SERIN_CHECK(read_row(examples.bytes(), row++, rows));
    return malformed();
  }

  /// Texts of the context are copied into every row.
  Status check_repeated(int64_t rows) {
    size_t bytes = 0;
    for (const Feature& feature : common_)
      if (feature.kind == Feature::Kind::kBytes) bytes += feature.list.size();
    if (bytes > limits_.tensor_bytes / static_cast<size_t>(rows)) return too_much_context(limits_);
    repeated_bytes_ = bytes * static_cast<size_t>(rows);
    return {};
  }

  Status read_example(Bytes bytes, std::string_view what, Row& row) {
    Message example(decoding_, "Example", bytes);
    while (example.next()) {
      if (example.field() != 1) continue;
      Message features = example.message("Features");
      while (features.next()) {
        if (features.field() != 1) continue;
        const Feature feature = read_feature(decoding_, features.bytes());
        SERIN_CHECK(malformed());
        const auto spec = std::ranges::find(signature_.inputs, feature.name, &TensorSpec::name);
        if (spec == signature_.inputs.end())
          return invalid(fmt::format("{} has a feature '{}' that {} has no input for{}", what, feature.name.substr(0, 256),
                                     signature_.model, names_instead_of(feature.name, signature_.inputs)));
        row[static_cast<size_t>(spec - signature_.inputs.begin())] = feature;
      }
    }
    return malformed();
  }

  Status read_row(Bytes bytes, int64_t row, int64_t rows) {
    Row features = common_;
    SERIN_CHECK(read_example(bytes, fmt::format("example {}", row), features));
    if (row == 0) SERIN_CHECK(take_shapes(features, rows));
    for (size_t i = 0; i < features.size(); ++i) {
      if (features[i].kind == Feature::Kind::kNone)
        return invalid(fmt::format("example {} has no feature '{}'", row, signature_.inputs[i].name));
      SERIN_CHECK(read_values(features[i], row_of(builder_.request.inputs[i], row), row));
    }
    return {};
  }

  Status take_shapes(const Row& features, int64_t rows) {
    for (size_t i = 0; i < features.size(); ++i) {
      const TensorSpec& spec = signature_.inputs[i];
      if (features[i].kind == Feature::Kind::kNone) continue;
      SERIN_CHECK(builder_.begin_input(spec.name));
      builder_.request.inputs[i].dtype = spec.dtype;
      SERIN_CHECK(builder_.set_shape(i, example_dims(spec, rows, count_values(decoding_, features[i]))));
    }
    SERIN_CHECK(malformed());
    SERIN_CHECK(builder_.check_all_given());
    for (const TensorView& tensor : builder_.request.inputs)
      if (!may_fill(tensor, input_bytes_)) return invalid(fmt::format("the examples have fewer values than {} rows take", rows));
    return builder_.allocate(input_bytes_ + repeated_bytes_);
  }

  Status read_values(const Feature& feature, const TensorView& tensor, int64_t row) {
    int64_t count = 0;
    std::optional<int64_t> bad;
    with_type(tensor.dtype, [&]<class T>(const T&) {
      each_value(decoding_, feature, [&](const auto& value) {
        if (count < tensor.elements() && !store(tensor.as<T>()[count], value) && !bad) bad = count;
        ++count;
      });
    });
    SERIN_CHECK(malformed());
    if (bad)
      return invalid(fmt::format("example {}: element {} of feature '{}' is not {}", row, *bad, feature.name, with_article(tensor.dtype)));
    if (count != tensor.elements())
      return invalid(fmt::format("example {}: feature '{}' has {} elements, {} takes {}", row, feature.name, count, signature_.model,
                                 tensor.elements()));
    return {};
  }

  const Signature& signature_;
  const RequestLimits& limits_;
  RequestBuilder builder_;
  Decoding decoding_;
  Row common_;  // of the context
  size_t input_bytes_ = 0;
  size_t repeated_bytes_ = 0;  // of the context's texts in all rows
};

}  // namespace

Result<TfExamplesCall> TfExamplesCall::read(std::string_view message, TfMethod method) {
  const Bytes bytes = std::as_bytes(std::span(message));
  TfExamplesCall call;
  call.begin = bytes.data();
  Decoding decoding{.begin = bytes.data()};
  Message in(decoding, "request", bytes);
  const bool many = method == TfMethod::kPredict;
  if (!many) call.tasks.push_back({.method = method});
  while (in.next()) {
    if (in.field() == 2) call.input = in.bytes();
    if (in.field() != 1) continue;
    if (!many) {
      call.tasks.front().spec.merge(in.message("ModelSpec"));
      continue;
    }
    TfTask& task = call.tasks.emplace_back();
    std::string_view name;
    Message fields = in.message("InferenceTask");
    while (fields.next()) {
      if (fields.field() == 1) task.spec.merge(fields.message("ModelSpec"));
      if (fields.field() == 2) name = fields.text();
    }
    if (call.tasks.size() > 16) return invalid("more than 16 tasks");
    if (name == "tensorflow/serving/regress")
      task.method = TfMethod::kRegress;
    else if (name != "tensorflow/serving/classify" && !decoding.error)
      return Error{Code::kUnsupported, fmt::format("Unsupported signature method_name: {}", name.substr(0, 256))};
  }
  if (decoding.error) return invalid("the message is not such a request: " + decoding.error->message);
  if (call.tasks.empty()) return invalid("Inference request must contain at least one task");
  for (const TfTask& task : call.tasks) {
    const TfModelSpec& first = call.tasks.front().spec;
    if (task.spec.model != first.model || task.spec.version != first.version || task.spec.label != first.label)
      return invalid("All ModelSpecs in a MultiInferenceRequest must access the same model version");
  }
  return call;
}

Result<InferRequest> TfExamplesCall::decode(const Signature& signature, const RequestLimits& limits) const {
  return Examples(signature, limits, begin).decode(input, tasks);
}

}  // namespace serin::protocol
