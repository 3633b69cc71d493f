// json_client.cc: one client, one kept connection, a tensor of floats as JSON in and out of a model whose output is its input.
//
//   json_client PORT MODEL ROWS COLUMNS SECONDS   prints {"ms": [...], "bytes": N, "exact": true}
//
// The request is printed before the clock starts and the answer is read into floats after it has stopped, so that a time is the server's and the
// loopback's alone. Every answer is compared with what was sent, bit by bit.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "json_client: %s\n", why.c_str());
  std::exit(1);
}

int connect_to(uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("nobody listens there");
  return socket;
}

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) fail("the connection broke while the request was sent");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

/// The body of one answer with a Content-Length; `buffer` is kept for the next.
std::string_view receive(int socket, std::string& buffer) {
  size_t filled = 0, whole = 0, head = 0;
  do {
    if (filled == buffer.size()) buffer.resize(filled * 2);
    const ssize_t got = ::recv(socket, buffer.data() + filled, buffer.size() - filled, 0);
    if (got <= 0) fail("the connection broke while the answer came");
    filled += static_cast<size_t>(got);
    if (whole > 0) continue;
    const std::string_view bytes(buffer.data(), filled);
    const size_t end = bytes.find("\r\n\r\n");
    if (end == std::string_view::npos) continue;
    if (!bytes.starts_with("HTTP/1.1 200")) fail("the answer is " + std::string(bytes.substr(0, 300)));
    head = end + 4;
    size_t at = bytes.find("ontent-");
    while (at < end && ::strncasecmp(bytes.data() + at + 7, "length:", 7) != 0) at = bytes.find("ontent-", at + 1);
    if (at >= end) fail("the answer has no length");
    whole = head + std::strtoull(bytes.data() + at + 14, nullptr, 10);
    if (buffer.size() < whole) buffer.resize(whole);
  } while (whole == 0 || filled < whole);
  return std::string_view(buffer).substr(head, whole - head);
}

bool same(std::string_view answer, const std::vector<float>& sent) {
  size_t at = answer.find("\"data\":[");
  if (at == std::string_view::npos) return false;
  const char *next = answer.data() + at + 8, *end = answer.data() + answer.size();
  for (const float expected : sent) {
    float value = 0;
    next = std::from_chars(next, end, value).ptr + 1;
    if (next > end || std::memcmp(&value, &expected, sizeof value) != 0) return false;
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) fail("wants PORT MODEL ROWS COLUMNS SECONDS");
  const int socket = connect_to(static_cast<uint16_t>(std::atoi(arguments[1])));
  std::vector<float> values(static_cast<size_t>(std::atoi(arguments[3])) * static_cast<size_t>(std::atoi(arguments[4])));
  std::mt19937 random(1);
  std::normal_distribution<float> pixels(0, 1);
  std::string body =
      std::string(R"({"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[)") + arguments[3] + "," + arguments[4] + R"(],"data":[)";
  for (float& value : values) {
    value = pixels(random);
    char text[32];
    body.append(text, std::to_chars(text, text + sizeof text, value).ptr) += ',';
  }
  body.back() = ']';
  body += "}]}";
  const std::string request = std::string("POST /v2/models/") + arguments[2] +
                              "/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" +
                              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;

  std::string buffer(1 << 16, '\0');
  std::string times;
  bool exact = true;
  const auto end = Clock::now() + std::chrono::duration<double>(std::atof(arguments[5]));
  while (times.empty() || Clock::now() < end) {
    const auto begun = Clock::now();
    send_all(socket, request);
    const std::string_view answer = receive(socket, buffer);
    const std::chrono::duration<double, std::milli> took = Clock::now() - begun;
    exact = exact && same(answer, values);
    times += (times.empty() ? "" : ", ") + std::to_string(took.count());
  }
  std::printf("{\"ms\": [%s], \"bytes\": %zu, \"exact\": %s}\n", times.c_str(), request.size(), exact ? "true" : "false");
  ::close(socket);
}
