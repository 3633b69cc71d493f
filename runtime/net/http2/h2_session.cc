#include "runtime/net/http2/h2_session.h"

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

H2Session::H2Session(IoLoop& loop, Side side, size_t streams, size_t header_bytes) : loop_(loop) {
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_option_set_max_continuations(option, kContinuations);
  nghttp2_option_set_stream_reset_rate_limit(option, kResetBurst, kResetsPerSecond);
  const auto make = side == Side::kServer ? nghttp2_session_server_new2 : nghttp2_session_client_new2;
  const int failure = make(&session_, h2_callbacks(), this, option);
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
      if (!dropped_) on_over(step == Intake::Step::kEnd ? "the connection was closed" : socket_.describe(intake_.error()));
      break;
    }
    receive({room.data(), bytes});
    total += bytes;
    if (total >= kMostAtOnce) break;
  }
  loop_.buffers.give(std::move(buffer));
}

void H2Session::receive(std::string_view bytes) {
  heard_ = loop_.now();
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
  if (loop_.now() - odd_since_ > kOddTime) {
    odd_since_ = loop_.now();
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
