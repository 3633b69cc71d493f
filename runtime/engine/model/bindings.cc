// bindings.cc: derives the sizes of the symbols from the shapes of a request, or the sentence that tells a client what is wrong.

#include <array>
#include <string>

#include "runtime/engine/engine.h"

namespace serin::engine {

namespace {

/// As the Open Inference Protocol has it: clients read these messages.
std::string_view protocol_name(DType dtype) {
  constexpr std::array<std::string_view, 15> kNames = {"?",      "BOOL",   "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16",
                                                       "UINT32", "UINT64", "FP16", "BF16",  "FP32",  "FP64",  "BYTES"};
  return static_cast<size_t>(dtype) < kNames.size() ? kNames[static_cast<size_t>(dtype)]
                                                    : dtype_name(dtype);  // the protocol has no narrow types
}

class Matcher {
 public:
  explicit Matcher(const TensorInfo& model, const TensorView& request) : model_(model), request_(request) {}

  Status match(graph::Bindings& bindings, std::map<std::string, std::string, std::less<>>& bound_by) const {
    if (request_.dtype != model_.dtype) return mismatch(std::string(protocol_name(request_.dtype)) + " ");
    if (request_.shape.rank() != model_.dims.size()) return mismatch();
    for (size_t axis = 0; axis < model_.dims.size(); ++axis) {
      const int64_t size = request_.shape[axis];
      if (size < 0) return mismatch("", ": dimension " + std::to_string(axis) + " is negative");
      const auto symbol = model_.dims[axis].symbol_name();
      if (!symbol) continue;
      const auto [bound, fresh] = bindings.emplace(*symbol, size);
      if (fresh)
        bound_by[*symbol] = model_.name;
      else if (bound->second != size)
        return mismatch("", ": '" + *symbol + "' is " + std::to_string(bound->second) + " in input '" + bound_by[*symbol] + "'");
    }
    return {};
  }

  /// Fixed dimensions, and those computed from symbols that other inputs have bound.
  Status match_rest(const graph::Bindings& bindings) const {
    for (size_t axis = 0; axis < model_.dims.size(); ++axis) {
      const auto expected = model_.dims[axis].bind(bindings).value();
      if (expected && *expected != request_.shape[axis]) return mismatch();
    }
    return {};
  }

 private:
  Error mismatch(const std::string& dtype = "", const std::string& why = "") const {
    return Error{Code::kInvalidArgument, "input '" + model_.name + "' expects " + graph::print(model_.dims) + " " +
                                             std::string(protocol_name(model_.dtype)) + ", the request has " + dtype +
                                             request_.shape.str() + why};
  }

  const TensorInfo& model_;
  const TensorView& request_;
};

}  // namespace

Result<graph::Bindings> bindings_for(std::span<const TensorInfo> model_inputs, std::span<const TensorView> inputs) {
  if (model_inputs.size() != inputs.size()) {
    return Error{Code::kInvalidArgument,
                 "the model has " + std::to_string(model_inputs.size()) + " inputs, the request has " + std::to_string(inputs.size())};
  }
  graph::Bindings bindings;
  std::map<std::string, std::string, std::less<>> bound_by;
  for (size_t i = 0; i < inputs.size(); ++i) SERIN_CHECK(Matcher(model_inputs[i], inputs[i]).match(bindings, bound_by));
  for (size_t i = 0; i < inputs.size(); ++i) SERIN_CHECK(Matcher(model_inputs[i], inputs[i]).match_rest(bindings));
  return bindings;
}

}  // namespace serin::engine
