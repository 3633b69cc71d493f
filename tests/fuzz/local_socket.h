// local_socket.h: where a fuzzer's server listens: an abstract Unix socket, so that no ports are used up, however many thousand connections there are.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <functional>
#include <string>
#include <string_view>

namespace serin::fuzz {

class LocalSocket {
 public:
  explicit LocalSocket(std::string_view name);

  int listening() const { return listening_; }  ///< for net::ServerOptions, whose it is then

  enum class Then : uint8_t { kClose, kWait };
  /// Sends all of it on a new connection, closes its own half or waits, and answers what came until the other side closes or `enough` says so of all that came.
  /// Ten seconds without a byte are a finding.
  std::string converse(std::string_view sent, Then then, const std::function<bool(std::string_view)>& enough = {}) const;

 private:
  sockaddr_un address_{};
  socklen_t size_ = 0;
  int listening_ = -1;
};

}  // namespace serin::fuzz
