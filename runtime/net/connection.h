// connection.h: one client of a server: reads a request, hands it to the handler, writes the answer, and again.
// For the .cc files of net only.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "runtime/net/body_reader.h"
#include "runtime/net/buffer.h"
#include "runtime/net/deadline.h"
#include "runtime/net/head_parser.h"
#include "runtime/net/listener.h"
#include "runtime/net/loop_impl.h"
#include "runtime/net/server.h"

namespace serin::net {

/// Shared by a connection and the Responder of its request. The connection may end first, and so may the Responder.
struct Responder::State {
  Loops::Loop* loop;
  std::weak_ptr<Connection> connection;  // locked on its io thread only, so that it also ends there
  std::atomic<bool> cancelled{false};
  bool sent = false;                // belongs to the Responder
  std::function<void()> on_cancel;  // io thread only
};

/// Everything runs on the io thread that owns the connection.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Listener> listener, Loops::Loop& loop, boost::asio::ip::tcp::socket socket, std::string peer);

  void start();
  /// The answer to the request whose Responder this was; too late, it is dropped.
  void answer(const Responder::State& responder, Response response);
  void close();
  /// The next answer will be the last; where no request comes within a moment, it ends without one.
  void drain();
  void on_deadline();

 private:
  enum class State : uint8_t {
    kHead,       // waiting for a request or for the rest of its head
    kBody,       // waiting for the rest of a body
    kHandling,   // the handler has the request
    kAnswered,   // response_ is to be written
    kWriting,    // the peer is slow to take it
    kLingering,  // all said; waits for the peer to notice, so that it is not reset before it has read
    kClosed
  };

  void process();
  bool process_head();
  bool process_body();
  void begin_request();
  void dispatch();
  void refuse(const Refusal& refusal);
  void read();
  void on_read(const boost::system::error_code& failure, size_t bytes);
  void begin_write();
  bool continue_write();
  void end_write();
  void cancel_request();
  void expire(std::chrono::milliseconds after);

  const std::shared_ptr<Listener> listener_;
  Listener::PerLoop& here_;
  Loops::Loop& loop_;
  boost::asio::ip::tcp::socket socket_;
  const std::string peer_;
  Deadline deadline_;

  State state_ = State::kHead;
  Buffer buffer_;
  HeadParser parser_;
  BodyReader reader_;
  Request request_;
  std::shared_ptr<Responder::State> responder_;
  Response response_;
  std::string out_;     // head of the answer
  size_t written_ = 0;  // of head and body together
  bool reading_ = false, reading_window_ = false;
  bool in_handler_ = false;
  bool fresh_ = true;  // nothing has been asked yet
  bool keep_alive_ = true, http10_ = false, head_only_ = false;
};

}  // namespace serin::net
