// body_reader.h: reads the body of an HTTP/1.1 message: the bytes after the head, until the message ends.
//
//   BodyReader reader(limits);
//   reader.begin(Framing::kChunked, 0);                         // may refuse at once: a length over the limit is 413 before a byte is read
//   step = reader.feed(bytes, at_most, consumed, data);         // `data` is a part of `bytes`; bytes not consumed are passed again
//
// A body of known length may be read from the socket directly to its destination, past any buffer: see left() and skipped().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/net/message/head_parser.h"

namespace serin::net {

struct BodyLimits {
  size_t bytes;
  size_t chunks;
  std::string_view bytes_from = {};  ///< as ServerOptions::body_bytes_from; must outlive the reader
  size_t trailer_bytes = 8 * 1024;   ///< over it: 431
};

class BodyReader {
 public:
  using Step = HeadParser::Step;

  explicit BodyReader(const BodyLimits& limits) : limits_(limits) {}

  /// kDone if there is no body. `length` is used for Framing::kLength only.
  Step begin(Framing framing, uint64_t length);
  /// Reads until there is a piece of the body (of at most `most` bytes), the message ends, or `bytes` are used up.
  Step feed(std::string_view bytes, size_t most, size_t& consumed, std::string_view& data);
  /// Whether the body ends with the connection.
  bool ends_at_close() const { return framing_ == Framing::kUntilClose; }

  /// Bytes of the body still to come; nothing if only its end tells.
  std::optional<uint64_t> left() const { return framing_ == Framing::kLength ? std::optional(left_) : std::nullopt; }
  /// Reports bytes of a body of known length that did not go through feed().
  Step skipped(size_t bytes);

  const Refusal& refusal() const { return refusal_; }

 private:
  enum class State : uint8_t { kSize, kExtension, kSizeLf, kData, kDataCr, kDataLf, kTrailer };

  Step feed_chunked(std::string_view bytes, size_t most, size_t& consumed, std::string_view& data);
  bool size_line(char c);
  bool end_of_size_line();
  bool trailer_line_ok() const;
  Step refuse(int status, std::string_view reason, std::string message);
  Step too_large();

  const BodyLimits limits_;
  Framing framing_ = Framing::kNone;
  State state_ = State::kSize;
  uint64_t left_ = 0;   // bytes left of the body or of the chunk
  uint64_t total_ = 0;  // bytes received, if only the end tells
  size_t chunks_ = 0;
  int digits_ = 0;              // digits of the chunk size
  size_t extension_bytes_ = 0;  // bytes of this chunk's extension
  size_t trailer_bytes_ = 0;    // bytes of all trailers
  std::string trailer_;         // the line so far
  Refusal refusal_;
};

}  // namespace serin::net
