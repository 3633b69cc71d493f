// h2_session.h: the part of an HTTP/2 connection that client and server share: bytes through nghttp2, in both directions.
//
// For the .cc files of net only.
//
//   socket -> nghttp2 -> H2Stream, which records events -> advance() calls the handler, never from a callback of nghttp2: it may write
//   H2Stream::send() -> nghttp2 -> outlet, at once, as far as windows and outlet accept; the rest stays with its owner, nothing is queued
//   outlet -> socket once a turn of the loop, for all streams together
//
// The work that a peer can cause is bounded. While the outlet is full, nothing is read, so answers to PING and SETTINGS cannot accumulate.
// A stream takes at most its window. nghttp2 bounds header blocks, CONTINUATION frames and resets. Unusual events (resets by our side,
// empty frames) are counted: a connection with too many of them gets ENHANCE_YOUR_CALM and ends.
#pragma once

#include <nghttp2/nghttp2.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/net/http2/h2_fields.h"
#include "runtime/net/io/intake.h"
#include "runtime/net/io/io_loop.h"
#include "runtime/net/io/outlet.h"
#include "runtime/net/io/socket.h"

namespace serin::net {

class H2Stream;
/// The callbacks of every session, in h2_callbacks.cc.
const nghttp2_session_callbacks* h2_callbacks();

class H2Session : public Watcher, public TurnEnd, public std::enable_shared_from_this<H2Session> {
 public:
  static constexpr uint32_t kStreamWindow = 256 << 10;     // bytes that a peer may send before the handler has taken them
  static constexpr uint32_t kConnectionWindow = 16 << 20;  // returned at once: one waiting stream must not stop the others
  static constexpr size_t kFullOutlet = 128 << 10;         // above it nothing more is framed, and nothing is read

  H2Session(const H2Session&) = delete;
  H2Session& operator=(const H2Session&) = delete;
  virtual ~H2Session();

  void on_ready(uint32_t events) final;
  void on_turn_end() final;

  // For its streams.
  nghttp2_session* raw() const { return session_; }
  IoLoop& loop() { return loop_; }
  std::string& out() { return outlet_.text(); }
  bool full() { return outlet_.text().size() >= kFullOutlet; }
  FieldWriter& writer() { return writer_; }
  /// Ensures that advance() is called.
  void touch(H2Stream& stream);
  /// Ensures that H2Stream::room_again() is called once the stream may send.
  void await_room(H2Stream& stream);
  /// Moves the frames that nghttp2 has ready to the outlet.
  void pump();
  /// Sends the content of the outlet at the end of this turn.
  void schedule();
  /// Removes all references to the stream.
  void forget(H2Stream& stream);

 protected:
  enum class Side : uint8_t { kServer, kClient };
  H2Session(IoLoop& loop, Side side, size_t streams, size_t header_bytes);

  /// The connection is open; epoll reports its events here from now on.
  void begin(Socket socket, const Intake& intake);
  void receive(std::string_view bytes);
  /// Sends the reason, then ends.
  void end_with(uint32_t error);
  /// Ends at once, without a call to the streams.
  void drop_socket();
  bool dropped() const { return dropped_; }
  void shutdown_send() { socket_.shutdown_send(); }
  const Socket& socket() const { return socket_; }
  bool writable() const { return outlet_.writable(); }
  const std::shared_ptr<H2Session> self() { return shared_from_this(); }
  bool heard_since(std::chrono::steady_clock::time_point when) const { return heard_ > when; }

  /// The peer opens a stream. Null: the stream is refused.
  virtual H2Stream* accept_stream(int32_t id) = 0;
  virtual void on_goaway() {}
  /// The connection has ended: all is done, or `what` broke it.
  virtual void on_over(std::string_view what) = 0;
  /// Called after all events of a turn.
  virtual void on_rest() = 0;

 private:
  friend struct H2Callbacks;

  void read();
  void dispatch();
  bool wake_senders();
  void count_oddity();

  IoLoop& loop_;
  nghttp2_session* session_ = nullptr;
  Socket socket_;
  Intake intake_;
  Outlet outlet_{/*writable=*/false};
  FieldWriter writer_;
  std::vector<H2Stream*> touched_, advancing_, roomless_;
  std::chrono::steady_clock::time_point heard_{};  // when the last bytes came
  std::chrono::steady_clock::time_point odd_since_{};
  int oddities_ = 0;
  bool scheduled_ = false, reading_ = false, windows_moved_ = false, dropped_ = false, over_ = false;
};

/// The part of a stream that both sides share. It belongs to its session, which reuses it.
class H2Stream {
 public:
  H2Stream(H2Session& session, HeadParser::Kind kind, const HeadLimits& limits) : session_(session), fields_(kind, limits) {}
  H2Stream(const H2Stream&) = delete;
  H2Stream& operator=(const H2Stream&) = delete;
  virtual ~H2Stream() = default;

  // nghttp2 calls these; they record the events.
  virtual void begin_fields() = 0;
  virtual void fields_done(bool end) = 0;
  FieldReader& fields() { return fields_; }
  void take(std::string_view data);
  void input_ended();
  void closed(uint32_t error);
  void output_sent();
  /// nghttp2 calls offer() for up to `most` bytes, then give() with the frame's head for the bytes that were promised.
  ssize_t offer(size_t most, uint32_t& flags);
  void give(std::string_view frame_head, size_t bytes);

  /// Reports the recorded events to the handler.
  virtual void advance() = 0;
  void room_again();
  /// Whether a byte could be sent now.
  bool has_room() const;

 protected:
  void begin_stream(int32_t id);
  void end_stream();
  int32_t id() const { return id_; }
  void set_id(int32_t id) { id_ = id; }
  /// The handler, if it may receive bytes.
  virtual BodyHandler* receiver() = 0;
  /// Bytes of the body still to come, if known.
  std::optional<uint64_t> left() const;

  /// Passes bytes that came before the handler had room. True: no bytes are left.
  bool pass_early(BodyHandler& handler);
  void tell(BodyHandler& handler, bool end);
  /// True once after send() took less than it was given.
  bool has_room_again() { return std::exchange(room_again_, false); }
  size_t send(std::string_view bytes, bool last);
  void send_end();
  void read_more();
  void reset(uint32_t error);
  nghttp2_data_provider provider();

  H2Session& session_;
  FieldReader fields_;
  Headers trailers_;       // to be sent
  uint64_t received_ = 0;  // bytes of the body
  uint32_t error_ = 0;     // the reason why it was closed
  bool head_done_ = false;
  bool input_ended_ = false;  // the last byte has come
  bool end_told_ = false;     // the handler knows it
  bool waits_for_handler_ = false, waits_for_room_ = false;
  bool output_ended_ = false;  // the last byte has been taken
  bool output_sent_ = false;   // all is framed, including trailers
  bool closed_ = false;

 private:
  friend class H2Session;
  size_t hand_over(BodyHandler& handler, std::string_view data);

  int32_t id_ = 0;
  uint64_t handed_over_ = 0;  // of received_
  Buffer early_;              // bytes that came before the handler had room for them
  std::string_view offered_;
  bool last_offered_ = false, deferred_ = false;
  bool progressed_ = false, room_again_ = false, touched_ = false;
};

}  // namespace serin::net
