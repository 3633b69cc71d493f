// body_reader.h: the bytes after a head, until the message ends.
//
//   BodyReader reader(limits);
//   reader.begin(Framing::kChunked, 0);                             // may refuse at once: a length over the limit is 413 before a byte is read
//   step = reader.feed(bytes, at_most, consumed, data);             // `data` is a part of `bytes`; what is not consumed comes again
//
// A body of known length may be read from the socket straight to where it belongs, past any buffer: see left() and skipped().
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
  std::string_view bytes_from = {};  ///< as ServerOptions::body_bytes_from; outlives the reader
  size_t trailer_bytes = 8 * 1024;   ///< over it: 431
};

class BodyReader {
 public:
  using Step = HeadParser::Step;

  explicit BodyReader(const BodyLimits& limits) : limits_(limits) {}

  /// kDone where there is no body. `length` counts for Framing::kLength only.
  Step begin(Framing framing, uint64_t length);
  /// Reads until there is a piece of the body (of at most `most` bytes), the message ends, or `bytes` are used up.
  Step feed(std::string_view bytes, size_t most, size_t& consumed, std::string_view& data);
  /// The connection ended: whether the body did, too.
  bool ends_at_close() const { return framing_ == Framing::kUntilClose; }

  /// How much of the body is still to come; nothing: only its end will tell.
  std::optional<uint64_t> left() const { return framing_ == Framing::kLength ? std::optional(left_) : std::nullopt; }
  /// That many bytes of a body of known length did not need to go through feed().
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
  uint64_t left_ = 0;   // of the body or of the chunk
  uint64_t total_ = 0;  // that has come, where only the end tells
  size_t chunks_ = 0;
  int digits_ = 0;              // of the chunk size
  size_t extension_bytes_ = 0;  // of this chunk
  size_t trailer_bytes_ = 0;    // of all
  std::string trailer_;         // the line so far
  Refusal refusal_;
};

}  // namespace serin::net
