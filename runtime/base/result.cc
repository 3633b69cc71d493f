// result.cc: names of the codes, and the one place where an Error becomes an exception.

#include "runtime/base/result.h"

#include <stdexcept>

namespace serin {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return "invalid_argument";
    case Code::kNotFound: return "not_found";
    case Code::kAlreadyExists: return "already_exists";
    case Code::kFailedPrecondition: return "failed_precondition";
    case Code::kConflict: return "conflict";
    case Code::kOutOfRange: return "out_of_range";
    case Code::kTooLarge: return "too_large";
    case Code::kUnsupported: return "unsupported";
    case Code::kCorrupt: return "corrupt";
    case Code::kOverloaded: return "overloaded";
    case Code::kUnavailable: return "unavailable";
    case Code::kDeadlineExceeded: return "deadline_exceeded";
    case Code::kCancelled: return "cancelled";
    case Code::kPermissionDenied: return "permission_denied";
    case Code::kIo: return "io";
    case Code::kInternal: return "internal";
  }
  return "internal";
}

Error Error::in(std::string_view context) const {
  std::string whole;
  whole.reserve(context.size() + 2 + message.size());
  whole.append(context).append(": ").append(message);
  return Error{code, std::move(whole)};
}

void throw_exception_from_error(const Error& error, const boost::source_location& where) {
  throw std::logic_error(error.message + " (value() of an error at " + where.file_name() + ":" + std::to_string(where.line()) + ")");
}

}  // namespace serin
