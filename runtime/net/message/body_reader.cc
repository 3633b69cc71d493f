// body_reader.cc: reads a body to its end: after a known number of bytes, with a chunk of size zero, or with the connection.
//
// Chunked (RFC 9112, section 7.1) is a small state machine over bytes, as they come in any pieces; only data is taken in bulk. Sizes are 1
// to 16 hexadecimal digits directly followed by CRLF or ";". Extensions and trailers are checked, bounded and dropped: Serin uses none, and
// data that is not kept cannot be smuggled.

#include "runtime/net/message/body_reader.h"

#include <algorithm>

#include "runtime/net/message/text.h"

namespace serin::net {
namespace {

constexpr size_t kExtensionBytes = 256;  // of one chunk

}  // namespace

BodyReader::Step BodyReader::begin(Framing framing, uint64_t length) {
  framing_ = framing;
  state_ = State::kSize;
  left_ = framing == Framing::kLength ? length : 0;
  total_ = 0;
  chunks_ = extension_bytes_ = trailer_bytes_ = 0;
  digits_ = 0;
  trailer_.clear();
  if (left_ > limits_.bytes) return too_large();
  const bool empty = framing == Framing::kNone || (framing == Framing::kLength && length == 0);
  return empty ? Step::kDone : Step::kMore;
}

BodyReader::Step BodyReader::feed(std::string_view bytes, size_t most, size_t& consumed, std::string_view& data) {
  consumed = 0;
  data = {};
  if (framing_ == Framing::kChunked) return feed_chunked(bytes, most, consumed, data);
  const uint64_t allowed = framing_ == Framing::kLength ? left_ : limits_.bytes - total_;
  if (allowed == 0 && !bytes.empty()) return too_large();  // how much is taken before does not depend on the pieces that it comes in
  data = bytes.substr(0, static_cast<size_t>(std::min<uint64_t>(allowed, most)));
  consumed = data.size();
  if (framing_ == Framing::kLength) return skipped(consumed);
  total_ += consumed;
  return Step::kMore;
}

BodyReader::Step BodyReader::skipped(size_t bytes) {
  left_ -= bytes;
  return left_ == 0 ? Step::kDone : Step::kMore;
}

BodyReader::Step BodyReader::feed_chunked(std::string_view bytes, size_t most, size_t& consumed, std::string_view& data) {
  while (consumed < bytes.size()) {
    if (state_ == State::kData) {
      data = bytes.substr(consumed, static_cast<size_t>(std::min<uint64_t>(left_, most)));
      consumed += data.size();
      left_ -= data.size();
      total_ += data.size();
      if (left_ == 0) state_ = State::kDataCr;
      return Step::kMore;
    }
    const char c = bytes[consumed++];
    switch (state_) {
      case State::kSize:
      case State::kExtension:
        if (!size_line(c)) return Step::kRefused;
        break;
      case State::kSizeLf:
        if (c != '\n') return refuse(400, "chunk_size", "a chunk size line does not end with a carriage return and a line feed");
        if (!end_of_size_line()) return Step::kRefused;
        if (left_ > limits_.bytes - total_) return too_large();
        break;
      case State::kDataCr:
        if (c != '\r') return refuse(400, "chunk_end", "a chunk is longer than its size says");
        state_ = State::kDataLf;
        break;
      case State::kDataLf:
        if (c != '\n') return refuse(400, "chunk_end", "a chunk does not end with a carriage return and a line feed");
        state_ = State::kSize;
        digits_ = 0;
        extension_bytes_ = 0;
        break;
      case State::kTrailer:
        if (++trailer_bytes_ > limits_.trailer_bytes) {
          return refuse(431, "trailers_too_large", "the trailers are larger than " + std::to_string(limits_.trailer_bytes) + " bytes");
        }
        if (c != '\n') {
          trailer_.push_back(c);
          break;
        }
        if (trailer_ == "\r") return Step::kDone;
        if (!trailer_line_ok()) return refuse(400, "trailer", "a trailer is not 'name: value' in printable ASCII characters");
        trailer_.clear();
        break;
      case State::kData: break;  // above
    }
  }
  return Step::kMore;
}

bool BodyReader::size_line(char c) {
  if (state_ == State::kExtension) {
    if (c == '\r') {
      state_ = State::kSizeLf;
    } else if (!text::is(c, text::kValue) || ++extension_bytes_ > kExtensionBytes) {
      refuse(400, "chunk_extension", "a chunk extension is not printable ASCII or longer than 256 bytes");
      return false;
    }
    return true;
  }
  if (text::is(c, text::kHexDigit) && digits_ < 16) {
    left_ = left_ * 16 + text::hex_value(c);
    ++digits_;
    return true;
  }
  if (digits_ > 0 && c == '\r') {
    state_ = State::kSizeLf;
    return true;
  }
  if (digits_ > 0 && c == ';') {
    state_ = State::kExtension;
    return true;
  }
  refuse(400, "chunk_size", "a chunk size is not 1 to 16 hexadecimal digits");
  return false;
}

bool BodyReader::end_of_size_line() {
  if (left_ == 0) {
    state_ = State::kTrailer;
    return true;
  }
  state_ = State::kData;
  if (++chunks_ <= limits_.chunks) return true;
  refuse(413, "too_many_chunks", "the body has more than " + std::to_string(limits_.chunks) + " chunks");
  return false;
}

bool BodyReader::trailer_line_ok() const {
  if (trailer_.empty() || trailer_.back() != '\r' || text::is(trailer_.front(), text::kWhitespace)) return false;
  FieldLine field;
  return parse_field_line(std::string_view(trailer_).substr(0, trailer_.size() - 1), field);
}

BodyReader::Step BodyReader::too_large() {
  refusal_ = body_too_large(limits_.bytes, limits_.bytes_from);
  return Step::kRefused;
}

BodyReader::Step BodyReader::refuse(int status, std::string_view reason, std::string message) {
  refusal_ = {status, reason, std::move(message)};
  return Step::kRefused;
}

}  // namespace serin::net
