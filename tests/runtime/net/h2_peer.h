// h2_peer.h: the frames of HTTP/2 by hand, for tests that send what no library would. Understands what comes back.
#pragma once

#include <nghttp2/nghttp2.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/runtime/net/raw_socket.h"

namespace serin::net::test {

enum FrameType : uint8_t { kData, kHeaders, kPriority, kReset, kSettings, kPushPromise, kPing, kGoaway, kWindowUpdate, kContinuation };
enum FrameFlag : uint8_t { kEndStream = 1, kAck = 1, kEndHeaders = 4 };

struct H2Frame {
  uint8_t type = 0, flags = 0;
  uint32_t stream = 0;
  std::string payload;
  std::map<std::string, std::string> fields;  ///< of HEADERS

  bool ends_stream() const { return (type == kData || type == kHeaders) && (flags & kEndStream) != 0; }
  /// Of RST_STREAM and GOAWAY.
  uint32_t error() const {
    const size_t at = type == kGoaway ? 4 : 0;
    uint32_t code = 0;
    for (size_t i = at; i < at + 4 && i < payload.size(); ++i) code = code << 8 | static_cast<unsigned char>(payload[i]);
    return code;
  }
};

inline std::string number(uint32_t value, int bytes = 4) {
  std::string out;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
  return out;
}

inline std::string frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload = {}) {
  return number(static_cast<uint32_t>(payload.size()), 3) + static_cast<char>(type) + static_cast<char>(flags) + number(stream) +
         std::string(payload);
}

using Fields = std::vector<std::pair<std::string, std::string>>;

/// Literal fields without indexing, no Huffman code: what is in them goes out as it is.
inline std::string block(const Fields& fields) {
  const auto text = [](const std::string& value) {
    if (value.size() < 127) return std::string(1, static_cast<char>(value.size())) + value;
    std::string out(1, 127);
    size_t rest = value.size() - 127;
    for (; rest >= 128; rest >>= 7) out.push_back(static_cast<char>(rest % 128 + 128));
    return out + static_cast<char>(rest) + value;
  };
  std::string out;
  for (const auto& [name, value] : fields) out += '\0' + text(name) + text(value);
  return out;
}

inline Fields request(const std::string& path, Fields more = {}, const std::string& method = "GET") {
  Fields fields = {{":method", method}, {":scheme", "http"}, {":authority", "a"}, {":path", path}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

/// One side of a connection.
class H2Peer {
 public:
  /// As a client; says hello.
  static H2Peer connect(uint16_t port, std::string_view settings = {}) {
    H2Peer peer(RawSocket::connect(port));
    peer.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, settings));
    return peer;
  }
  explicit H2Peer(RawSocket socket) : socket_(std::move(socket)) { nghttp2_hd_inflate_new(&inflater_); }
  H2Peer(H2Peer&& other) noexcept
      : socket_(std::move(other.socket_)), inflater_(std::exchange(other.inflater_, nullptr)), ahead_(std::move(other.ahead_)) {}
  ~H2Peer() {
    if (inflater_) nghttp2_hd_inflate_del(inflater_);
  }

  RawSocket& socket() { return socket_; }
  bool send(std::string_view bytes) { return socket_.send(bytes); }
  bool send_headers(uint32_t stream, const Fields& fields, bool end = true) {
    return send(frame(kHeaders, kEndHeaders | (end ? kEndStream : 0), stream, block(fields)));
  }
  bool send_data(uint32_t stream, std::string_view bytes, bool end) { return send(frame(kData, end ? kEndStream : 0, stream, bytes)); }

  /// The bytes before the first frame, as a server.
  bool receive_preface() {
    constexpr size_t kSize = 24;
    while (ahead_.size() < kSize)
      if (!more()) return false;
    ahead_.erase(0, kSize);
    return true;
  }

  /// The next frame; SETTINGS are acknowledged. Nothing at the end of the connection.
  std::optional<H2Frame> receive() {
    constexpr size_t kHead = 9;
    const auto byte = [this](size_t at) { return static_cast<uint32_t>(static_cast<unsigned char>(ahead_[at])); };
    while (ahead_.size() < kHead)
      if (!more()) return std::nullopt;
    const size_t size = byte(0) << 16 | byte(1) << 8 | byte(2);
    while (ahead_.size() < kHead + size)
      if (!more()) return std::nullopt;
    H2Frame got{.type = static_cast<uint8_t>(byte(3)),
                .flags = static_cast<uint8_t>(byte(4)),
                .stream = byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8),
                .payload = ahead_.substr(kHead, size)};
    ahead_.erase(0, kHead + size);
    if (got.type == kHeaders) inflate(got);
    if (got.type == kSettings && !(got.flags & kAck)) send(frame(kSettings, kAck, 0));
    return got;
  }
  /// The next one of that type (and stream), others skipped.
  std::optional<H2Frame> receive(FrameType type, uint32_t stream = 0) {
    for (;;) {
      auto got = receive();
      if (!got || (got->type == type && (stream == 0 || got->stream == stream))) return got;
    }
  }

  struct Answer {
    std::map<std::string, std::string> head, trailers;
    std::string body;
    bool complete = false;
    uint32_t reset = 0;
  };
  /// All of the answer on that stream; windows are opened as it comes.
  Answer receive_answer(uint32_t stream) {
    Answer answer;
    while (auto got = receive()) {
      if (got->stream != stream) continue;
      if (got->type == kReset) answer.reset = got->error();
      if (got->type == kHeaders)
        (answer.head.empty() || answer.head[":status"].starts_with('1') ? answer.head : answer.trailers) = got->fields;
      if (got->type == kData) answer.body += got->payload;
      if (got->type == kData && !got->payload.empty()) {
        const std::string bytes = number(static_cast<uint32_t>(got->payload.size()));
        send(frame(kWindowUpdate, 0, 0, bytes) + (got->ends_stream() ? "" : frame(kWindowUpdate, 0, stream, bytes)));
      }
      answer.complete = got->ends_stream();
      if (answer.complete || got->type == kReset) break;
    }
    return answer;
  }
  Answer ask(uint32_t stream, const Fields& fields, std::string_view body = {}) {
    send_headers(stream, fields, body.empty());
    if (!body.empty()) send_data(stream, body, true);
    return receive_answer(stream);
  }
  /// The error of the GOAWAY that ends the connection; nothing where it ends without.
  std::optional<uint32_t> receive_goaway() {
    std::optional<uint32_t> error;
    while (auto got = receive())
      if (got->type == kGoaway) error = got->error();
    return error;
  }

 private:
  bool more() {
    if (!socket_.receive_some()) return false;
    ahead_ += socket_.take();
    return true;
  }
  void inflate(H2Frame& got) {
    const auto* at = reinterpret_cast<const uint8_t*>(got.payload.data());
    size_t left = got.payload.size();
    for (;;) {
      nghttp2_nv field;
      int flags = 0;
      const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, at, left, 1);
      if (used < 0) return;
      at += used;
      left -= static_cast<size_t>(used);
      if (flags & NGHTTP2_HD_INFLATE_EMIT)
        got.fields[std::string(field.name, field.name + field.namelen)] = std::string(field.value, field.value + field.valuelen);
      if (flags & NGHTTP2_HD_INFLATE_FINAL) break;
      if (left == 0 && !(flags & NGHTTP2_HD_INFLATE_EMIT)) break;
    }
    nghttp2_hd_inflate_end_headers(inflater_);
  }

  RawSocket socket_;
  nghttp2_hd_inflater* inflater_ = nullptr;
  std::string ahead_;
};

}  // namespace serin::net::test
