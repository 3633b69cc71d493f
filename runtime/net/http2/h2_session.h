// h2_session.h: one HTTP/2 connection as far as client and server are alike: bytes through nghttp2, both ways. For the .cc files of net only.
//
//   socket -> nghttp2 -> H2Stream, which notes what came -> advance() tells the handler: never out of a callback of nghttp2, so that it may write
//   H2Stream::send() -> nghttp2 -> outlet, at once, as much as windows and outlet take: the rest stays with its owner, nothing is queued here
//   outlet -> socket once a turn of the loop, for all streams together
//
// What a peer can ask of us is bounded: while the outlet is full nothing is read (so answers to PING and SETTINGS cannot pile up), a stream holds
// at most its window, nghttp2 bounds header blocks, CONTINUATION frames and resets, and what is merely odd (resets by our side, empty frames)
// is counted: a connection with too much of it is told to calm down and ended.
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
#include "runtime/net/io/loop_impl.h"
#include "runtime/net/io/outlet.h"
#include "runtime/net/io/socket.h"

namespace serin::net {

class H2Stream;
/// Of every session, in h2_callbacks.cc.
const nghttp2_session_callbacks* h2_callbacks();

class H2Session : public Watcher, public TurnEnd, public std::enable_shared_from_this<H2Session> {
 public:
  static constexpr uint32_t kStreamWindow = 256 << 10;     // what a peer may send before the handler has taken it
  static constexpr uint32_t kConnectionWindow = 16 << 20;  // given back at once: one stream that waits must not stop the others
  static constexpr size_t kFullOutlet = 128 << 10;         // then nothing more is framed, and nothing read

  H2Session(const H2Session&) = delete;
  H2Session& operator=(const H2Session&) = delete;
  virtual ~H2Session();

  void on_ready(uint32_t events) final;
  void on_turn_end() final;

  // For its streams.
  nghttp2_session* raw() const { return session_; }
  Loops::Loop& loop() { return loop_; }
  std::string& out() { return outlet_.text(); }
  bool full() { return outlet_.text().size() >= kFullOutlet; }
  FieldWriter& writer() { return writer_; }
  /// advance() will be called.
  void touch(H2Stream& stream);
  /// H2Stream::room_again() will be called once it may send.
  void await_room(H2Stream& stream);
  /// What nghttp2 wants to send goes to the outlet.
  void pump();
  /// What is in the outlet is sent at the end of this turn.
  void schedule();
  /// Nothing refers to it any more.
  void forget(H2Stream& stream);

 protected:
  enum class Side : uint8_t { kServer, kClient };
  H2Session(Loops::Loop& loop, Side side, size_t streams, size_t header_bytes);

  /// The connection stands, and epoll tells of it here.
  void begin(Socket socket, const Intake& intake);
  void receive(std::string_view bytes);
  /// Says why and ends once that is sent.
  void end_with(uint32_t error);
  /// At once. The streams are not told.
  void drop_socket();
  bool dropped() const { return dropped_; }
  void shutdown_send() { socket_.shutdown_send(); }
  const Socket& socket() const { return socket_; }
  bool writable() const { return outlet_.writable(); }
  const std::shared_ptr<H2Session> self() { return shared_from_this(); }
  bool heard_since(std::chrono::steady_clock::time_point when) const { return heard_ > when; }

  /// The peer opens a stream. Null: nobody wants it.
  virtual H2Stream* accept_stream(int32_t id) = 0;
  virtual void on_goaway() {}
  /// The connection is of no more use: everything was said, or `what` broke it.
  virtual void on_over(std::string_view what) = 0;
  /// After all that a turn brought.
  virtual void on_rest() = 0;

 private:
  friend struct H2Callbacks;

  void read();
  void dispatch();
  bool wake_senders();
  void count_oddity();

  Loops::Loop& loop_;
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

/// One stream, as far as both sides are alike. Belongs to its session, which uses it again.
class H2Stream {
 public:
  H2Stream(H2Session& session, HeadParser::Kind kind, const HeadLimits& limits) : session_(session), fields_(kind, limits) {}
  H2Stream(const H2Stream&) = delete;
  H2Stream& operator=(const H2Stream&) = delete;
  virtual ~H2Stream() = default;

  // Called by nghttp2: these note what came.
  virtual void begin_fields() = 0;
  virtual void fields_done(bool end) = 0;
  FieldReader& fields() { return fields_; }
  void take(std::string_view data);
  void input_ended();
  void closed(uint32_t error);
  void output_sent();
  /// Called when nghttp2 asks for up to `most` bytes to send, then with the frame's head for those it was promised.
  ssize_t offer(size_t most, uint32_t& flags);
  void give(std::string_view frame_head, size_t bytes);

  /// Tells the handler what was noted.
  virtual void advance() = 0;
  void room_again();
  /// Whether a byte could be sent now.
  bool has_room() const;

 protected:
  void begin_stream(int32_t id);
  void end_stream();
  int32_t id() const { return id_; }
  void set_id(int32_t id) { id_ = id; }
  /// The handler, if it may be given bytes.
  virtual BodyHandler* receiver() = 0;
  /// What of the body is still to come, where that is known.
  std::optional<uint64_t> left() const;

  /// What came before the handler had room. True: that was all.
  bool pass_early(BodyHandler& handler);
  void tell(BodyHandler& handler, bool end);
  /// Once after send() took less than it was given.
  bool has_room_again() { return std::exchange(room_again_, false); }
  size_t send(std::string_view bytes, bool last);
  void send_end();
  void read_more();
  void reset(uint32_t error);
  nghttp2_data_provider provider();

  H2Session& session_;
  FieldReader fields_;
  Headers trailers_;       // to be sent
  uint64_t received_ = 0;  // of the body
  uint32_t error_ = 0;     // why it was closed
  bool head_done_ = false;
  bool input_ended_ = false;  // the last byte has come
  bool end_told_ = false;     // and the handler knows
  bool waits_for_handler_ = false, waits_for_room_ = false;
  bool output_ended_ = false;  // the last byte has been taken
  bool output_sent_ = false;   // and framed, trailers included
  bool closed_ = false;

 private:
  friend class H2Session;
  size_t hand_over(BodyHandler& handler, std::string_view data);

  int32_t id_ = 0;
  uint64_t handed_over_ = 0;  // of received_
  Buffer early_;              // what came before the handler had room for it
  std::string_view offered_;
  bool last_offered_ = false, deferred_ = false;
  bool progressed_ = false, room_again_ = false, touched_ = false;
};

}  // namespace serin::net
