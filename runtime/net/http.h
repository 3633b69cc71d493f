// http.h: HTTP messages as plain data for Serin's servers and clients.
//
// Bodies are whole (bounded by Limits), except those of answers whose end is not known yet.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/memory_budget.h"

namespace serin::net {

class BodySource;
class Loop;
struct PeerCertificate;

/// Every limit has a default and a name in the configuration.
struct Limits {
  size_t request_line_bytes = 8 * 1024;                ///< over it: 414
  size_t header_bytes = 64 * 1024;                     ///< whole head; over it: 431
  size_t header_count = 100;                           ///< over it: 431
  size_t body_bytes = size_t{64} << 20;                ///< over it: 413
  size_t chunks = 65'536;                              ///< of one chunked body; over it: 413
  size_t streams = 128;                                ///< of one HTTP/2 connection at once; over it: refused, to be tried again
  size_t connections = 10'000;                         ///< over it: accepted last, and closed at once with 503
  std::chrono::milliseconds header_timeout{10'000};    ///< from the first byte of a head to its end; over it: 408
  std::chrono::milliseconds body_timeout{30'000};      ///< between two reads of a body; over it: 408
  std::chrono::milliseconds silence_timeout{300'000};  ///< for a gRPC call in which neither side sends anything
  std::chrono::milliseconds idle_timeout{75'000};      ///< between two requests of a connection
  std::chrono::milliseconds write_timeout{30'000};     ///< for a peer that does not read its answer
};

/// A view of one header of a list; invalid once the list changes.
struct Header {
  std::string_view name;   ///< as received; compared without case
  std::string_view value;  ///< trimmed of spaces and tabs
};

bool equal_ignoring_case_and_size(std::string_view a, std::string_view b);
inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && equal_ignoring_case_and_size(a, b);  // the size nearly always decides
}

/// A case-insensitive list of headers, in order. One string stores them in wire format, so that a reused list allocates nothing and a
/// message is written in few pieces. Lookups are linear.
class Headers {
 public:
  /// Neither argument may be a view of this list. A header whose name is not a token is dropped. Line ends and other control characters in
  /// a value become spaces.
  void add(std::string_view name, std::string_view value);
  void add_parsed(std::string_view name,
                  std::string_view value);                  ///< the same for a header that was parsed from a message and is well formed
  void set(std::string_view name, std::string_view value);  ///< replaces all headers of that name
  void remove(std::string_view name);
  /// Removes all headers for which unwanted(header) is true; it is called once for each, in order.
  template <class Unwanted>
  void remove_if(const Unwanted& unwanted) {
    std::erase_if(fields_, [&](const Field& field) { return unwanted(header(field)); });
  }
  /// The first header of that name; empty if there is none (see has()).
  std::string_view get(std::string_view name) const;
  bool has(std::string_view name) const;
  size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }
  /// All headers, in order: `for (const Header header : headers)`.
  auto begin() const { return Iterator{this, 0}; }
  auto end() const { return Iterator{this, fields_.size()}; }
  void clear();
  /// Appends "name: value\r\n" of each header for which wanted(name) is true.
  template <class Wanted>
  void print(std::string& out, const Wanted& wanted) const {
    size_t begin = 0, end = 0;  // of a run of headers that is copied at once
    for (const Field& field : fields_) {
      if (!wanted(header(field).name)) continue;
      if (field.at != end) {
        out.append(text_, begin, end - begin);
        begin = field.at;
      }
      end = field.at + field.name_size + field.value_size + 4;
    }
    out.append(text_, begin, end - begin);
  }

 private:
  struct Field {
    uint32_t at, name_size, value_size;  // in text_: name, ": ", value, "\r\n"
  };
  struct Iterator {
    const Headers* list;
    size_t index;
    Header operator*() const { return list->header(list->fields_[index]); }
    Iterator& operator++() {
      ++index;
      return *this;
    }
    bool operator==(const Iterator&) const = default;
  };
  Header header(const Field& field) const {
    const char* name = text_.data() + field.at;
    return {{name, field.name_size}, {name + field.name_size + 2, field.value_size}};
  }

  std::string text_;
  std::vector<Field> fields_;
};

struct Request {
  std::string method;  ///< a token, as received: "GET"
  std::string target;  ///< as received: "/v2/models/x?y=1"
  std::string path;    ///< percent-decoded once, dot segments refused, always begins with '/'; never decoded again
  std::string query;   ///< raw, without '?'
  /// Without the headers of the connection (Connection and the names in it, Transfer-Encoding, Upgrade ...) and Content-Length.
  Headers headers;
  std::string body;
  MemoryBudget::Share share;                           ///< share of the budget for a large body
  std::string peer;                                    ///< "127.0.0.1:4711"
  std::shared_ptr<const PeerCertificate> certificate;  ///< the client's verified certificate (tls.h); null: none
  std::chrono::steady_clock::time_point received{};    ///< when its head came, by Loop::now()
  Loop* loop = nullptr;                                ///< the io thread of its connection; null: it came over none
  std::chrono::steady_clock::time_point whole{};       ///< when its body was complete, if it had to be decompressed

  void clear();  ///< keeps the memory, except large parts
};

struct Response {
  int status = 200;
  Headers headers;  ///< Content-Length is written by the server; hop-by-hop headers are ignored
  std::string body;
  std::shared_ptr<BodySource> source;  ///< replaces the body if it is made while it is sent (body_source.h)
  Headers trailers;                    ///< after the body; HTTP/2 only
  bool close = false;                  ///< close the connection after this answer

  void clear();  ///< like Request::clear()
};

/// A request that a client sends.
struct Outgoing {
  std::string method = "GET";
  std::string target = "/";
  Headers headers;                          ///< the client writes Host and Content-Length
  std::shared_ptr<const std::string> body;  ///< shared, so that a retry or a mirror costs no copy; null: none
};

/// Makes {"error": message} with the given status.
Response json_error(int status, std::string_view message);
/// For example "Too Many Requests".
std::string_view reason_phrase(int status);
/// Returns the whole text as a JSON string, including quotes. Invalid UTF-8 bytes become U+FFFD.
std::string json_quote(std::string_view text);

/// The address of a server.
struct Origin {
  std::string host;
  uint16_t port = 80;
  bool secure = false;  ///< uses TLS: https
  friend bool operator==(const Origin&, const Origin&) = default;
  friend auto operator<=>(const Origin&, const Origin&) = default;
};

/// Splits "http://host:8080/path" or "https://..."; nothing if it is not such a URL. Default port: 80, or 443 for https; default path: "/".
struct Url {
  Origin origin;
  std::string path = "/";
};
std::optional<Url> parse_url(std::string_view text);

}  // namespace serin::net
