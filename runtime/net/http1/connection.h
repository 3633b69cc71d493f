// connection.h: one HTTP/1.1 client of a server: reads a request, lets the handler answer it, repeats. For the .cc files of net only.
#pragma once

#include <memory>
#include <string>

#include "runtime/net/io/inlet.h"
#include "runtime/net/io/io_loop.h"
#include "runtime/net/io/outlet.h"
#include "runtime/net/io/socket.h"
#include "runtime/net/message/listener.h"
#include "runtime/net/stream.h"

namespace serin::net {

/// Everything runs on the io thread that owns the connection.
class Connection final : public Watcher, public ServedConnection, public ServerStream, public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Listener> listener, IoLoop& loop, Socket socket, std::string peer);
  virtual ~Connection() = default;

  void start();
  void close() override;
  /// The next answer is the last; if no request comes within a moment, the connection ends without one.
  void drain() override;

  void on_ready(uint32_t events) override;

  Loop& loop() override { return loop_; }
  const std::string& peer() const override { return peer_; }
  std::shared_ptr<const PeerCertificate> certificate() const override;
  void begin_answer(const AnswerHead& head) override;
  size_t write(std::string_view bytes, bool last) override;
  void set_trailers(const Headers&) override {}  // few HTTP/1.1 clients read trailers
  void read_more() override;
  void abort() override;

 private:
  enum class Phase : uint8_t {
    kHead,       // waiting for a request or for the rest of its head
    kRequest,    // from there to the end of its answer
    kLingering,  // everything is sent; waits for the peer to close, so that a reset does not destroy the answer
    kClosed
  };

  void process();
  bool advance_head();
  bool advance_request();
  bool advance_body();
  void go_on_with_http2();
  void begin_request();
  void say_continue();
  void refuse(const Refusal& refusal);
  void answer_for_ourselves(const Response& response);
  bool flush();
  void end_answer_if_sent();
  void begin_next();
  void lose_handler();
  void on_deadline();
  void expire(std::chrono::milliseconds after);

  const std::shared_ptr<Listener> listener_;
  Listener::PerLoop& here_;
  IoLoop& loop_;
  Socket socket_;
  const std::string peer_;
  Deadline deadline_;
  Inlet inlet_;
  std::shared_ptr<RequestHandler> handler_;  // made with the first request
  Outlet outlet_{/*writable=*/true};

  Phase phase_ = Phase::kHead;
  int status_ = 0;  // status of the answer
  bool processing_ = false;
  bool fresh_ = true;          // no request has come yet
  bool may_be_http2_;          // the bytes so far may be the HTTP/2 preface
  bool handled_ = false;       // the handler has the request
  bool request_done_ = false;  // all of the request has come
  bool paused_ = false;        // the handler had no room for more of the request
  bool answer_begun_ = false;
  bool answer_done_ = false;  // its last byte is in outlet_ or sent
  bool keep_alive_ = true, http10_ = false, head_only_ = false;
};

}  // namespace serin::net
