// client_errors.h: limits and errors that the clients share: HTTP/1.1, HTTP/2, and Session. For the .cc files of net only.
#pragma once

#include <cerrno>
#include <chrono>
#include <string_view>

namespace serin::net {

inline constexpr int kInterimAnswers = 8;                                               ///< 1xx; more is a flood
inline constexpr std::chrono::nanoseconds kLongestCall = std::chrono::hours(24 * 365);  ///< so that sums of times do not overflow

inline constexpr std::string_view kTooLate = "no complete answer in time";
inline constexpr std::string_view kBadInterim = "not a valid HTTP answer: too many or unexpected 1xx answers";
inline constexpr std::string_view kBadRequestLine = "the method or target of a request is not what HTTP allows";

/// Whether an errno of connect() or socket() is the fault of this machine, and says nothing about the server.
constexpr bool is_lack_of_ours(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == EADDRNOTAVAIL;
}

}  // namespace serin::net
