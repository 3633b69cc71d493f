// result.h: the one error type of Serin.
//
//   Result<Shape> shape = read_shape(bytes);
//   if (!shape) return shape.error();                     // propagates code and message
//   SERIN_TRY(const Shape shape, read_shape(bytes));      // the same in one line
//
// Code that handles what comes from outside returns Result<T>; exceptions mean a bug or end a subcommand.
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
  kAlreadyExists,       ///< a second one of what may exist once
  kFailedPrecondition,  ///< right request, wrong state (promote with no rollout)
  kConflict,            ///< somebody else changed it first (If-Match)
  kOutOfRange,          ///< an index or size past its limit
  kTooLarge,            ///< over a byte limit
  kUnsupported,         ///< valid, but not something this build can do
  kCorrupt,             ///< a file or message that contradicts itself
  kOverloaded,          ///< a queue or pool is full; try again later
  kUnavailable,         ///< not ready, not reachable, shutting down
  kDeadlineExceeded,    ///< the time given has passed
  kCancelled,           ///< nobody waits for the answer any more
  kPermissionDenied,    ///< the operating system or a policy said no
  kIo,                  ///< a read or write failed
  kInternal,            ///< a bug of ours
};

/// Lower-case word for logs and JSON, e.g. "invalid_argument".
std::string_view code_name(Code code);

struct Error {
  Code code = Code::kInternal;
  std::string message;  ///< what, where and what to do: "model 'digits' version 3: node 'Conv_4' (Conv): ..."

  /// The same error seen from one level up: "context: message".
  [[nodiscard]] Error in(std::string_view context) const;
};

/// What a reader of files, flags and requests says most often.
inline Error invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

/// Found by ADL when value() is called on an error.
[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

template <class T = void>
class [[nodiscard]] Result : public boost::system::result<T, Error> {
 public:
  using boost::system::result<T, Error>::result;
};

using Status = Result<void>;

#define SERIN_CONCAT_INNER(a, b) a##b
#define SERIN_CONCAT(a, b) SERIN_CONCAT_INNER(a, b)

/// SERIN_TRY(declaration, expression): declares from the value, or returns the error from this function.
#define SERIN_TRY(declaration, ...) SERIN_TRY_IMPL(SERIN_CONCAT(serin_try_, __LINE__), declaration, __VA_ARGS__)
#define SERIN_TRY_IMPL(result, declaration, ...) \
  auto result = (__VA_ARGS__);                   \
  if (!result) return result.error();            \
  declaration = std::move(*result)

/// SERIN_CHECK(expression): returns the error of a Status (or any Result whose value is not needed).
#define SERIN_CHECK(...)                                                               \
  do {                                                                                 \
    if (auto serin_status = (__VA_ARGS__); !serin_status) return serin_status.error(); \
  } while (false)

}  // namespace serin
