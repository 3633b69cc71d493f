// request_builder.h: puts an InferRequest together and checks it against the model's signature, for every protocol in the same words.
//
//   RequestBuilder builder(signature, limits);
//   SERIN_TRY(const size_t i, builder.begin_input("x"));  builder.set_datatype(i, "FP32");  builder.set_shape(i, {1, 4});   // for each input
//   builder.want("scores", {});                                                                        // for each output that is named
//   builder.check_all_given();  builder.allocate();  read_raw(bytes, builder.request.inputs[i]);       // memory is taken last, for data that is there
//   return builder.take();
//
// Internal to runtime/protocol. Requires the calls in that order; an error ends the building.
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

/// Of a request's parameter; nothing: a kind that none of ours has.
using ParameterValue = std::variant<std::monostate, bool, int64_t, uint64_t, std::string_view>;

/// Whether memory may be taken for a tensor of a request of so many bytes: for each element at least one has come. Small tensors are let pass: there are
/// protocols in which one value goes for many elements.
bool may_fill(const TensorView& tensor, size_t request_bytes);
inline constexpr size_t kMostFilled = size_t{16} << 20;  ///< bytes that a tensor may have more than came

class RequestBuilder {
 public:
  /// `memory`: of a request that is over; used again.
  RequestBuilder(const Signature& signature, const RequestLimits& limits, InferRequest memory = {});

  /// One that means the same over every protocol: timeout, priority, sequence_id, sequence_start, sequence_end. Others are not looked at.
  Status set_parameter(std::string_view name, const ParameterValue& value);

  /// The place of that input in the signature. Unknown, or given before: an error.
  Result<size_t> begin_input(std::string_view name);
  Status set_datatype(size_t input, std::string_view datatype);
  Status set_shape(size_t input, std::span<const int64_t> dims);
  /// kUnsupported, kInvalidArgument: why the model does not take it, `shown` being what the request has.
  Error bad_shape(size_t input, std::string_view shown, std::string_view why) const;

  /// An output by name; once.
  Status want(std::string_view name, WantedOutput how);
  /// All of them, where none was named.
  void want_rest(bool binary);

  Status check_all_given() const;
  /// But for inputs that have a standard value: in protocols that let them be left out.
  Status check_required_given() const;
  /// The first that check_required_given() finds missing.
  const TensorSpec* missing_input() const { return first_missing(/*may_leave_out=*/true); }
  bool is_given(size_t input) const { return request.inputs[input].dtype != DType::kUndefined; }
  /// Memory for all inputs; their data points to it from now on. `text_bytes`: at most of what elements of BYTES hold. kOverloaded: there is none now.
  Status allocate(size_t text_bytes = 0);
  /// The whole request: what was left out is its standard value. The signature must outlive it.
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

/// Of a model that was exported with a batch of 1, as the first dimension of all its inputs shows: so, and how to open it. Nothing of other models.
std::optional<std::string> how_to_open_batch(const Signature& signature);

}  // namespace serin::protocol
