// h2_stream.cc: bytes come in as nghttp2 finds them and go to the handler's memory at once where it has room; the rest waits here, and because its
// window is only given back as the handler takes it, that is never more than a window. Bytes go out while their owner waits for send() to
// return: nghttp2 asks for them there and then, or not at all.

#include <algorithm>
#include <cstring>

#include "runtime/net/http2/h2_session.h"

namespace serin::net {

void H2Stream::begin_stream(int32_t id) {
  id_ = id;
  trailers_.clear();
  received_ = handed_over_ = 0;
  error_ = 0;
  head_done_ = input_ended_ = end_told_ = waits_for_handler_ = output_ended_ = output_sent_ = closed_ = false;
  last_offered_ = deferred_ = progressed_ = room_again_ = false;
}

void H2Stream::end_stream() {
  if (!closed_) nghttp2_session_set_stream_user_data(session_.raw(), id_, nullptr);
  session_.forget(*this);
  early_.clear();
  session_.loop().buffers.give(std::move(early_));
}

std::optional<uint64_t> H2Stream::left() const {
  const Head& head = fields_.head();
  if (head.framing != Framing::kLength) return std::nullopt;
  return head.content_length - std::min(head.content_length, handed_over_);
}

// ---- in ----

size_t H2Stream::hand_over(BodyHandler& handler, std::string_view data) {
  size_t given = 0;
  while (given < data.size()) {
    const std::span<char> room = handler.body_room(left());
    if (room.empty()) break;
    const size_t bytes = std::min(room.size(), data.size() - given);
    std::memcpy(room.data(), data.data() + given, bytes);
    handler.body_filled(bytes);
    given += bytes;
    handed_over_ += bytes;
  }
  if (given > 0 && !closed_) nghttp2_session_consume_stream(session_.raw(), id_, given);
  return given;
}

void H2Stream::take(std::string_view data) {
  received_ += data.size();
  BodyHandler* handler = receiver();
  if (handler && early_.empty() && !waits_for_handler_) data.remove_prefix(hand_over(*handler, data));
  if (!data.empty()) {
    if (early_.capacity() == 0) early_ = session_.loop().buffers.take();
    early_.append(data);
  }
  progressed_ = true;
  session_.touch(*this);
}

void H2Stream::input_ended() {
  input_ended_ = true;
  session_.touch(*this);
}

void H2Stream::closed(uint32_t error) {
  closed_ = true;
  error_ = error;
  session_.touch(*this);
}

void H2Stream::output_sent() {
  output_sent_ = true;
  session_.touch(*this);
}

bool H2Stream::pass_early(BodyHandler& handler) {
  if (!waits_for_handler_ && !early_.empty()) {
    early_.consume(hand_over(handler, early_.data()));
    waits_for_handler_ = !early_.empty();
    if (early_.empty()) session_.loop().buffers.give(std::move(early_));
  }
  return input_ended_ && early_.empty();
}

void H2Stream::tell(BodyHandler& handler, bool end) {
  if (std::exchange(progressed_, false) || (end && !end_told_)) {
    end_told_ = end;
    handler.on_progress(end);
  }
}

void H2Stream::read_more() {
  if (!std::exchange(waits_for_handler_, false)) return;
  progressed_ = true;
  session_.touch(*this);
}

// ---- out ----

bool H2Stream::has_room() const {
  nghttp2_session* raw = session_.raw();
  return nghttp2_session_get_stream_remote_window_size(raw, id_) > 0 && nghttp2_session_get_remote_window_size(raw) > 0;
}

void H2Stream::room_again() {
  room_again_ = !last_offered_;
  if (last_offered_) send_end();
  session_.touch(*this);
}

/// All bytes are taken, and only that they were the last is still to be said.
void H2Stream::send_end() {
  if (std::exchange(deferred_, false)) nghttp2_session_resume_data(session_.raw(), id_);
  session_.pump();
  if (!output_ended_) session_.await_room(*this);
}

nghttp2_data_provider H2Stream::provider() {
  nghttp2_data_provider provider{};
  provider.source.ptr = this;
  provider.read_callback = [](nghttp2_session*, int32_t, uint8_t*, size_t most, uint32_t* flags, nghttp2_data_source* source, void*) {
    return static_cast<H2Stream*>(source->ptr)->offer(most, *flags);
  };
  return provider;
}

size_t H2Stream::send(std::string_view bytes, bool last) {
  if (closed_ || last_offered_ || (bytes.empty() && !last)) return bytes.size();
  offered_ = bytes;
  last_offered_ = last;
  if (std::exchange(deferred_, false)) nghttp2_session_resume_data(session_.raw(), id_);
  session_.pump();
  session_.schedule();
  const size_t taken = bytes.size() - std::exchange(offered_, {}).size();
  if (taken < bytes.size()) last_offered_ = false;
  if (taken < bytes.size() || (last && !output_ended_)) session_.await_room(*this);
  return taken;
}

ssize_t H2Stream::offer(size_t most, uint32_t& flags) {
  const size_t bytes = std::min(most, offered_.size());
  if ((bytes == 0 && !last_offered_) || session_.full()) {
    deferred_ = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (!last_offered_ || bytes < offered_.size()) return static_cast<ssize_t>(bytes);
  flags |= NGHTTP2_DATA_FLAG_EOF;
  output_ended_ = true;
  if (trailers_.empty()) return static_cast<ssize_t>(bytes);
  flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
  FieldWriter& writer = session_.writer();
  writer.trailers(trailers_);
  nghttp2_submit_trailer(session_.raw(), id_, writer.fields().data(), writer.fields().size());
  return static_cast<ssize_t>(bytes);
}

void H2Stream::give(std::string_view frame_head, size_t bytes) {
  session_.out().append(frame_head).append(offered_.substr(0, bytes));
  offered_.remove_prefix(bytes);
}

void H2Stream::reset(uint32_t error) {
  if (closed_) return;
  nghttp2_submit_rst_stream(session_.raw(), NGHTTP2_FLAG_NONE, id_, error);
  session_.schedule();
}

}  // namespace serin::net
