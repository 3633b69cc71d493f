// inlet.cc: small bodies come with their head in one read and are copied to the handler; of large ones all but the beginning is read to where
// the handler wants it.

#include "runtime/net/io/inlet.h"

#include <utility>

namespace serin::net {
namespace {

constexpr size_t kReadBytes = 16 * 1024;  // room for one read into the buffer: heads, and bodies small enough to be copied
constexpr size_t kMostAtOnce = 1 << 20;   // then the other connections of this thread have their turn

}  // namespace

Inlet::Step Inlet::read_into(Socket& socket, std::span<char> room, size_t& bytes) {
  switch (intake_.read(socket, room, bytes)) {
    case Intake::Step::kSome: return Step::kSome;
    case Intake::Step::kNothing: return Step::kNothing;
    case Intake::Step::kEnd: return Step::kEnd;
    default: return Step::kFailed;
  }
}

Inlet::Step Inlet::read(Socket& socket) {
  if (!intake_.readable()) return Step::kNothing;
  if (buffer_.capacity() == 0) buffer_ = pool_.take();
  size_t bytes;
  const Step step = read_into(socket, buffer_.room(kReadBytes), bytes);
  buffer_.filled(bytes);
  return step;
}

Inlet::Step Inlet::head(Socket& socket) {
  if (std::exchange(over_, false)) parser_.reset();
  if (!buffer_.empty()) {
    switch (parser_.feed(buffer_.data())) {
      case HeadParser::Step::kMore: break;
      case HeadParser::Step::kRefused: refused_by_parser_ = true; return Step::kRefused;
      case HeadParser::Step::kDone: buffer_.consume(parser_.size()); return Step::kDone;
    }
  }
  return read(socket);
}

Inlet::Step Inlet::begin_body(Framing framing, uint64_t length) {
  refused_by_parser_ = false;
  switch (reader_.begin(framing, length)) {
    case BodyReader::Step::kRefused: return Step::kRefused;
    case BodyReader::Step::kDone: return Step::kDone;
    case BodyReader::Step::kMore: break;
  }
  return Step::kSome;
}

Inlet::Step Inlet::body(Socket& socket, BodyHandler& handler) {
  for (size_t moved = 0; moved < kMostAtOnce;) {
    const auto left = reader_.left();
    const bool direct = buffer_.empty() && left && *left > kReadBytes;
    if (buffer_.empty() && !direct) {
      if (const Step step = read(socket); step != Step::kSome) return step;
    }
    std::span<char> room = handler.body_room(left);
    if (room.empty()) return Step::kPaused;
    BodyReader::Step step;
    size_t bytes, used;
    if (direct) {
      if (room.size() > *left) room = room.first(static_cast<size_t>(*left));
      if (const Step done = read_into(socket, room, bytes); done != Step::kSome) return done;
      step = reader_.skipped(bytes);
      used = bytes;
    } else {
      std::string_view data;
      step = reader_.feed(buffer_.data(), room.size(), used, data);
      data.copy(room.data(), data.size());
      buffer_.consume(used);
      bytes = data.size();
    }
    if (step == BodyReader::Step::kRefused) return Step::kRefused;
    moved += used;
    handler.body_filled(bytes);
    if (step == BodyReader::Step::kDone) return Step::kDone;
  }
  return Step::kSome;
}

}  // namespace serin::net
