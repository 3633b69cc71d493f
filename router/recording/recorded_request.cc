#include "router/recording/recorded_request.h"

#include <cstring>

namespace serin::router {
namespace {

void put_number(std::string& out, uint64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out += text;
}

/// After the first read past the end everything is empty.
struct Reader {
  std::string_view left;
  bool bad = false;

  uint64_t number() {
    uint64_t value = 0;
    bad = bad || left.size() < sizeof value;
    if (bad) return 0;
    std::memcpy(&value, left.data(), sizeof value);
    left.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const uint64_t size = number();
    bad = bad || size > left.size();
    if (bad) return "";
    std::string text(left.substr(0, static_cast<size_t>(size)));
    left.remove_prefix(text.size());
    return text;
  }
};

}  // namespace

size_t RecordedRequest::bytes() const {
  size_t bytes = sizeof *this + method.capacity() + target.capacity() + body.capacity();
  for (const auto& [name, value] : headers) bytes += sizeof(headers[0]) + name.size() + value.size();
  return bytes;
}

std::string encode(const RecordedRequest& request) {
  std::string out;
  put_number(out, static_cast<uint64_t>(request.at.time_since_epoch() / std::chrono::milliseconds(1)));
  put_number(out, uint64_t{request.grpc} | uint64_t{request.names_model} << 1);
  put_text(out, request.method);
  put_text(out, request.target);
  put_text(out, request.body);
  for (const auto& [name, value] : request.headers) {
    put_text(out, name);
    put_text(out, value);
  }
  return out;
}

Result<RecordedRequest> decode_request(std::string_view bytes) {
  Reader from{.left = bytes};
  RecordedRequest request;
  request.at = std::chrono::system_clock::time_point(std::chrono::milliseconds(from.number()));
  const uint64_t flags = from.number();
  request.grpc = (flags & 1) != 0;
  request.names_model = (flags & 2) != 0;
  request.method = from.text();
  request.target = from.text();
  request.body = from.text();
  while (!from.bad && !from.left.empty()) {
    std::string name = from.text();
    request.headers.emplace_back(std::move(name), from.text());
  }
  if (from.bad) return Error{Code::kCorrupt, "a recorded request that contradicts itself"};
  return request;
}

}  // namespace serin::router
