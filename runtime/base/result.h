// result.h: the one error type of Serin and the result type that carries it.
//
//   Result<Shape> shape = read_shape(bytes);
//   if (!shape) return shape.error();                     // propagates code and message
//   SERIN_TRY(const Shape shape, read_shape(bytes));      // the same in one line
//
// Code that handles input from outside returns Result<T>. An exception means a bug, or it ends a subcommand.
#pragma once

#include <boost/system/result.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace serin {

enum class Code : uint8_t {
  kInvalidArgument,     ///< the caller's fault: a flag, a field, a tensor
  kNotFound,            ///< a model, version, file or rollout that does not exist
  kAlreadyExists,       ///< a second instance of something that may exist once
  kFailedPrecondition,  ///< right request, wrong state (promote with no rollout)
  kConflict,            ///< another client changed it first (If-Match)
  kOutOfRange,          ///< an index or size past its limit
  kTooLarge,            ///< over a byte limit
  kUnsupported,         ///< valid, but not something this build can do
  kCorrupt,             ///< a file or message that contradicts itself
  kOverloaded,          ///< a queue or pool is full; try again later
  kUnavailable,         ///< not ready, not reachable, shutting down
  kDeadlineExceeded,    ///< the time given has passed
  kCancelled,           ///< the client does not wait for the answer any longer
  kPermissionDenied,    ///< the operating system or a policy refused it
  kIo,                  ///< a read or write failed
  kInternal,            ///< a bug in Serin
};

/// Returns a lower-case word for logs and JSON, for example "invalid_argument".
std::string_view code_name(Code code);

struct Error {
  Code code = Code::kInternal;
  std::string message;  ///< names the place, the problem and the remedy: "model 'digits' version 3: node 'Conv_4' (Conv): ..."

  /// Returns the same error with a prefix: "context: message".
  [[nodiscard]] Error in(std::string_view context) const;
};

/// Makes the most common error of readers of files, flags and requests.
inline Error invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

/// Boost finds it by ADL when value() is called on an error.
[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

template <class T = void>
class [[nodiscard]] Result : public boost::system::result<T, Error> {
 public:
  using boost::system::result<T, Error>::result;
};

using Status = Result<void>;

#define SERIN_CONCAT_INNER(a, b) a##b
#define SERIN_CONCAT(a, b) SERIN_CONCAT_INNER(a, b)

/// SERIN_TRY(declaration, expression): declares a variable from the value, or returns the error from this function.
#define SERIN_TRY(declaration, ...) SERIN_TRY_IMPL(SERIN_CONCAT(serin_try_, __LINE__), declaration, __VA_ARGS__)
#define SERIN_TRY_IMPL(result, declaration, ...) \
  auto result = (__VA_ARGS__);                   \
  if (!result) return result.error();            \
  declaration = std::move(*result)

/// SERIN_CHECK(expression): returns the error of a Status (or of any Result whose value is not needed).
#define SERIN_CHECK(...)                                                               \
  do {                                                                                 \
    if (auto serin_status = (__VA_ARGS__); !serin_status) return serin_status.error(); \
  } while (false)

}  // namespace serin
