// raw_socket.h: a blocking TCP client and a scripted TCP server, for tests that send what no HTTP library would.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace serin::net::test {

/// Waits at most this long for what must come; long, because it passes only when a test fails.
inline constexpr int kPatienceMs = 10'000;

class RawSocket {
 public:
  explicit RawSocket(int descriptor) : descriptor_(descriptor) {}
  static RawSocket connect(uint16_t port, int receive_buffer = 0) {
    RawSocket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (receive_buffer) ::setsockopt(socket.descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket.descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) socket.close();
    return socket;
  }
  RawSocket(RawSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), ahead_(std::move(other.ahead_)) {}
  RawSocket& operator=(RawSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(ahead_, other.ahead_);
    return *this;
  }
  ~RawSocket() { close(); }

  int descriptor() const { return descriptor_; }
  bool connected() const { return descriptor_ >= 0; }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  /// Ends with RST instead of FIN.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void half_close() { ::shutdown(descriptor_, SHUT_WR); }

  /// False where the other side no longer takes it.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  /// Appends what comes next; false at the end of the stream or when patience is over.
  bool receive_some() {
    pollfd wait{descriptor_, POLLIN, 0};
    if (::poll(&wait, 1, kPatienceMs) != 1) return false;
    char bytes[16384];
    const ssize_t received = ::recv(descriptor_, bytes, sizeof bytes, 0);
    if (received <= 0) return false;
    ahead_.append(bytes, static_cast<size_t>(received));
    return true;
  }
  /// What came and was not taken yet.
  std::string take() { return std::exchange(ahead_, ""); }
  /// All until the other side closes.
  std::string receive_all() {
    while (receive_some()) {
    }
    return take();
  }
  /// Head and body of the next answer, which has a content-length or no body; what came so far where none is complete.
  std::string receive_answer(bool head_only = false) {
    size_t end;
    while ((end = ahead_.find("\r\n\r\n")) == std::string::npos)
      if (!receive_some()) return std::exchange(ahead_, "");
    end += 4;
    const size_t length = ahead_.find("content-length: ");
    if (!head_only && length < end) end += static_cast<size_t>(std::stoul(ahead_.substr(length + 16)));
    while (ahead_.size() < end)
      if (!receive_some()) return std::exchange(ahead_, "");
    std::string answer = ahead_.substr(0, end);
    ahead_.erase(0, end);
    return answer;
  }
  /// The other side has closed and sent nothing more.
  bool at_end() { return ahead_.empty() && !receive_some(); }

 private:
  int descriptor_;
  std::string ahead_;
};

/// The status of an answer, 0 where it is none.
inline int status_of(std::string_view answer) {
  return answer.size() > 12 && answer.starts_with("HTTP/1.1 ") ? std::stoi(std::string(answer.substr(9, 3))) : 0;
}
inline std::string body_of(std::string_view answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == std::string_view::npos ? std::string() : std::string(answer.substr(end + 4));
}

/// Serves each connection with the same script, one after the other, on a thread of its own.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::function<void(RawSocket&)> script) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(listener_, 16);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, script = std::move(script)] {
      for (;;) {
        const int descriptor = ::accept(listener_, nullptr, nullptr);
        if (descriptor < 0) return;
        ++connections_;
        RawSocket socket(descriptor);
        script(socket);
      }
    });
  }
  ~ScriptedServer() {
    ::shutdown(listener_, SHUT_RDWR);  // ends accept()
    thread_.join();
    ::close(listener_);
  }
  uint16_t port() const { return port_; }
  int connections() const { return connections_; }

 private:
  int listener_;
  uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::thread thread_;
};

}  // namespace serin::net::test
