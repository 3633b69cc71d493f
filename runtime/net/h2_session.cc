#include "runtime/net/h2_session.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/log.h"

namespace serin::net {
namespace {

constexpr size_t kReadBytes = 32 * 1024;
constexpr size_t kMostAtOnce = 1 << 20;  // read in a turn; then the other connections of this thread have theirs
constexpr int kSendRounds = 8;
constexpr size_t kContinuations = 8;
// Resets by the client: a client may cancel what it asks, but not ask in order to cancel (CVE-2023-44487).
constexpr uint64_t kResetBurst = 1000, kResetsPerSecond = 200;
constexpr int kOddBurst = 200;  // frames of no use, and what made us reset a stream, in kOddTime
constexpr std::chrono::seconds kOddTime{10};

}  // namespace

/// What nghttp2 calls. Nothing here calls a handler but for body_room() and body_filled().
struct H2Callbacks {
  static H2Session& session(void* user) { return *static_cast<H2Session*>(user); }
  static H2Stream* stream(nghttp2_session* raw, int32_t id) {
    return static_cast<H2Stream*>(nghttp2_session_get_stream_user_data(raw, id));
  }

  static int on_begin_headers(nghttp2_session* raw, const nghttp2_frame* frame, void* user) {
    const int32_t id = frame->hd.stream_id;
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    H2Stream* known = stream(raw, id);
    if (!known && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      known = session(user).accept_stream(id);
      if (!known) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
      nghttp2_session_set_stream_user_data(raw, id, known);
    }
    if (known) known->begin_fields();
    return 0;
  }

  static int on_header(nghttp2_session* raw, const nghttp2_frame* frame, const uint8_t* name, size_t name_size, const uint8_t* value,
                       size_t value_size, uint8_t, void*) {
    if (H2Stream* known = stream(raw, frame->hd.stream_id)) {
      known->fields().add({reinterpret_cast<const char*>(name), name_size}, {reinterpret_cast<const char*>(value), value_size});
    }
    return 0;
  }

  static int on_invalid_header(nghttp2_session* raw, const nghttp2_frame* frame, const uint8_t*, size_t, const uint8_t*, size_t, uint8_t,
                               void*) {
    if (H2Stream* known = stream(raw, frame->hd.stream_id)) known->fields().add_malformed();
    return 0;
  }

  static int on_frame(nghttp2_session* raw, const nghttp2_frame* frame, void* user) {
    const bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
        if (H2Stream* known = stream(raw, frame->hd.stream_id)) known->fields_done(end);
        break;
      case NGHTTP2_DATA:
        if (H2Stream* known = stream(raw, frame->hd.stream_id); known && end) known->input_ended();
        if (!end && frame->hd.length == 0) session(user).count_oddity();
        break;
      case NGHTTP2_WINDOW_UPDATE:
      case NGHTTP2_SETTINGS: session(user).windows_moved_ = true; break;
      case NGHTTP2_GOAWAY: session(user).on_goaway(); break;
      default: break;
    }
    return 0;
  }

  static int on_data(nghttp2_session* raw, uint8_t, int32_t id, const uint8_t* data, size_t size, void*) {
    nghttp2_session_consume_connection(raw, size);
    if (H2Stream* known = stream(raw, id)) known->take({reinterpret_cast<const char*>(data), size});
    return 0;
  }

  static int on_stream_close(nghttp2_session* raw, int32_t id, uint32_t error, void*) {
    if (H2Stream* known = stream(raw, id)) known->closed(error);
    return 0;
  }

  static int on_frame_sent(nghttp2_session* raw, const nghttp2_frame* frame, void*) {
    const bool carries_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (!carries_end || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    if (H2Stream* known = stream(raw, frame->hd.stream_id)) known->output_sent();
    return 0;
  }

  static int on_invalid_frame(nghttp2_session*, const nghttp2_frame*, int, void* user) {
    session(user).count_oddity();
    return 0;
  }

  static int on_send_data(nghttp2_session*, nghttp2_frame*, const uint8_t* head, size_t size, nghttp2_data_source* source, void*) {
    constexpr size_t kFrameHead = 9;
    static_cast<H2Stream*>(source->ptr)->give({reinterpret_cast<const char*>(head), kFrameHead}, size);
    return 0;
  }

  static nghttp2_session_callbacks* table() {
    static nghttp2_session_callbacks* const made = [] {
      nghttp2_session_callbacks* callbacks = nullptr;
      nghttp2_session_callbacks_new(&callbacks);
      nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
      nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
      nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_invalid_header);
      nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
      nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
      nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
      nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
      nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
      return callbacks;
    }();
    return made;
  }
};

H2Session::H2Session(Loops::Loop& loop, Side side, size_t streams, size_t header_bytes) : loop_(loop) {
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_option_set_max_continuations(option, kContinuations);
  nghttp2_option_set_stream_reset_rate_limit(option, kResetBurst, kResetsPerSecond);
  const auto make = side == Side::kServer ? nghttp2_session_server_new2 : nghttp2_session_client_new2;
  const int failure = make(&session_, H2Callbacks::table(), this, option);
  nghttp2_option_del(option);
  if (failure != 0) throw std::bad_alloc();
  std::vector<nghttp2_settings_entry> settings = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
                                                  {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(header_bytes)},
                                                  {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}};
  if (side == Side::kServer)
    settings.push_back({NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, static_cast<uint32_t>(streams)});
  else
    settings.push_back({NGHTTP2_SETTINGS_ENABLE_PUSH, 0});
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
}

H2Session::~H2Session() { nghttp2_session_del(session_); }

void H2Session::begin(Socket socket, const Intake& intake) {
  socket_ = std::move(socket);
  intake_ = intake;
  outlet_.ready();
  windows_moved_ = true;
  schedule();
}

// ---- in ----

void H2Session::on_ready(uint32_t events) {
  if (dropped_) return;
  intake_.ready(events);
  if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) outlet_.ready();
  read();
  schedule();
}

void H2Session::read() {
  if (!socket_.open()) return;
  Buffer buffer = loop_.buffers.take();
  for (size_t total = 0; !dropped_ && !full();) {
    size_t bytes;
    const std::span<char> room = buffer.room(kReadBytes);
    const Intake::Step step = intake_.read(socket_, room, bytes);
    if (step == Intake::Step::kNothing) break;
    if (step != Intake::Step::kSome) {
      dispatch();  // what came before it
      if (!dropped_) on_over(step == Intake::Step::kEnd ? "the connection was closed" : std::strerror(intake_.error()));
      break;
    }
    receive({room.data(), bytes});
    total += bytes;
    if (total >= kMostAtOnce) break;
  }
  loop_.buffers.give(std::move(buffer));
}

void H2Session::receive(std::string_view bytes) {
  heard_ = loop_.now;
  if (over_) return;  // all is said; what comes is read so that the peer is not reset
  const ssize_t read = nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (read < 0) {
    const bool flooded = read == NGHTTP2_ERR_FLOODED;
    log::debug("an HTTP/2 connection ends: {}", nghttp2_strerror(static_cast<int>(read)));
    end_with(flooded ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR);
  }
  if (std::exchange(windows_moved_, false)) wake_senders();
  dispatch();
}

void H2Session::count_oddity() {
  if (loop_.now - odd_since_ > kOddTime) {
    odd_since_ = loop_.now;
    oddities_ = 0;
  }
  if (++oddities_ == kOddBurst) end_with(NGHTTP2_ENHANCE_YOUR_CALM);
}

// ---- streams ----

void H2Session::touch(H2Stream& stream) {
  if (std::exchange(stream.touched_, true)) return;
  touched_.push_back(&stream);
  schedule();
}

void H2Session::dispatch() {
  while (!touched_.empty() && !dropped_) {
    advancing_.swap(touched_);
    for (size_t i = 0; i < advancing_.size(); ++i) {
      H2Stream* stream = advancing_[i];
      if (stream == nullptr) continue;  // forgotten meanwhile
      stream->touched_ = false;
      stream->advance();
    }
    advancing_.clear();
  }
}

void H2Session::await_room(H2Stream& stream) {
  if (!std::exchange(stream.waits_for_room_, true)) roomless_.push_back(&stream);
}

/// True: somebody will go on. Those who waited longest come first.
bool H2Session::wake_senders() {
  if (full()) return false;
  const size_t before = roomless_.size();
  std::erase_if(roomless_, [](H2Stream* stream) {
    if (!stream->has_room()) return false;
    stream->waits_for_room_ = false;
    stream->room_again();
    return true;
  });
  return roomless_.size() != before;
}

void H2Session::forget(H2Stream& stream) {
  std::erase(roomless_, &stream);
  std::erase(touched_, &stream);
  std::ranges::replace(advancing_, &stream, static_cast<H2Stream*>(nullptr));
  stream.touched_ = stream.waits_for_room_ = false;
}

// ---- out ----

void H2Session::schedule() {
  if (dropped_ || std::exchange(scheduled_, true)) return;
  loop_.at_turn_end(shared_from_this());
}

void H2Session::pump() {
  while (!full()) {
    const uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size > 0) outlet_.text().append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    if (size <= 0) return;
  }
}

void H2Session::on_turn_end() {
  scheduled_ = false;
  if (intake_.readable()) read();  // what was left when it had its share
  if (dropped_) return;
  dispatch();
  for (int round = 0; round < kSendRounds && !dropped_; ++round) {
    pump();
    if (!socket_.open() || !outlet_.writable() || outlet_.empty()) break;
    if (!outlet_.flush(socket_)) intake_.ready(EPOLLERR);  // reading tells why
    if (!wake_senders()) break;
    dispatch();
  }
  if (dropped_) return;
  const bool said_all = outlet_.empty() && !nghttp2_session_want_read(session_) && !nghttp2_session_want_write(session_);
  if (said_all && !std::exchange(over_, true)) on_over("");
  if (dropped_) return;
  const bool can_send = socket_.open() && outlet_.writable() && !outlet_.empty();
  const bool can_read = socket_.open() && intake_.readable() && !full();
  if (can_send || can_read || !touched_.empty()) schedule();
  on_rest();
}

void H2Session::end_with(uint32_t error) {
  nghttp2_session_terminate_session(session_, error);
  schedule();
}

void H2Session::drop_socket() {
  if (std::exchange(dropped_, true)) return;
  socket_.close();
  loop_.retire(shared_from_this());
}

}  // namespace serin::net
