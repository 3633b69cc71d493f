// request_builder.h: builds an InferRequest and checks it against the model's signature, with the same messages for every protocol.
//
//   RequestBuilder builder(signature, limits);
//   SERIN_TRY(const size_t i, builder.begin_input("x")); builder.set_datatype(i, "FP32");  builder.set_shape(i, {1, 4});  // for each input
//   builder.want("scores", {});                                          // for each output that is named
//   builder.check_all_given();  builder.allocate();                      // memory is allocated last, for data that has arrived
//   read_raw(bytes, builder.request.inputs[i]);
//   return builder.take();
//
// Internal to runtime/protocol. Requires the calls in that order; after an error, stop building.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"

namespace serin::protocol {

/// Value of a request's parameter; nothing: a type that no known parameter has.
using ParameterValue = std::variant<std::monostate, bool, int64_t, uint64_t, std::string_view>;

/// Whether memory may be allocated for a tensor of a request of that many bytes: at least one byte must have arrived for each element.
/// Small tensors always pass, because some protocols send one value for many elements.
bool may_fill(const TensorView& tensor, size_t request_bytes);
inline constexpr size_t kMostFilled = size_t{16} << 20;  ///< limit for the bytes of a tensor beyond those received

class RequestBuilder {
 public:
  /// `memory`: a finished request, whose memory is reused.
  RequestBuilder(const Signature& signature, const RequestLimits& limits, InferRequest memory = {});

  /// Sets a parameter with the same meaning in every protocol: timeout, priority, sequence_id, sequence_start, sequence_end. Ignores
  /// others.
  Status set_parameter(std::string_view name, const ParameterValue& value);

  /// Returns the index of that input in the signature. An unknown or repeated input is an error.
  Result<size_t> begin_input(std::string_view name);
  Status set_datatype(size_t input, std::string_view datatype);
  Status set_shape(size_t input, std::span<const int64_t> dims);
  /// kUnsupported or kInvalidArgument, with the reason why the model refuses it; `shown` is the shape in the request.
  Error bad_shape(size_t input, std::string_view shown, std::string_view why) const;

  /// Requests an output by name, once.
  Status want(std::string_view name, WantedOutput how);
  /// Requests all outputs, if none was named.
  void want_rest(bool binary);

  Status check_all_given() const;
  /// The same, except for inputs with a default value, in protocols that allow omitting them.
  Status check_required_given() const;
  /// The first input that check_required_given() reports.
  const TensorSpec* missing_input() const { return first_missing(/*may_leave_out=*/true); }
  bool is_given(size_t input) const { return request.inputs[input].dtype != DType::kUndefined; }
  /// Allocates memory for all inputs; their data points to it from now on. `text_bytes`: upper bound for the contents of BYTES elements.
  /// kOverloaded: the memory budget is exhausted.
  Status allocate(size_t text_bytes = 0);
  /// Returns the whole request; omitted inputs have their default value. The signature must outlive it.
  InferRequest take();

  InferRequest request;

 private:
  Status check_given(bool may_leave_out) const;
  const TensorSpec* first_missing(bool may_leave_out) const;
  Status take_share(size_t bytes);
  const TensorSpec& spec(size_t input) const { return signature_.inputs[input]; }

  const Signature& signature_;
  const RequestLimits& limits_;
};

/// For a model exported with a fixed batch of 1, as the first dimension of all its inputs shows: says so, and how to open it. Returns
/// nothing for other models.
std::optional<std::string> how_to_open_batch(const Signature& signature);

}  // namespace serin::protocol
