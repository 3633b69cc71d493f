// client_connection.h: one connection of an Upstream: connects, sends one request at a time, reads its answer. For the .cc files of net
// only.
#pragma once

#include <memory>

#include "runtime/net/client/connector.h"
#include "runtime/net/io/inlet.h"
#include "runtime/net/io/io_loop.h"
#include "runtime/net/io/outlet.h"
#include "runtime/net/io/socket.h"
#include "runtime/net/upstream.h"

namespace serin::net {

class ClientConnection final : public Watcher, public ClientStream, public std::enable_shared_from_this<ClientConnection> {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit ClientConnection(Upstream& upstream);
  virtual ~ClientConnection() = default;

  /// Takes a request; connects first if necessary.
  void start(AnswerHandler& handler, Time deadline);
  /// Closes without a call to any handler.
  void close();

  void on_ready(uint32_t events) override;

  void begin_request(const RequestHead& head) override;
  size_t write(std::string_view bytes, bool last) override;
  void read_more() override;
  void set_deadline(Time deadline) override;
  void cancel() override;

 private:
  enum class State : uint8_t { kNew, kConnecting, kHead, kBody, kIdle, kClosed };

  void connect();
  void connected(Socket socket, const Error& why_not);
  void process();
  bool advance_head();
  bool advance_body();
  void begin_answer();
  void flush();
  void finish();
  void end_of_stream(int error);
  void refuse(const Refusal& refusal);
  void fail(Code code, std::string_view what, bool stale = false);
  void on_deadline();
  void arm(Time when);

  Upstream* upstream_;  // outlives every connection that is not closed
  IoLoop& loop_;
  Socket socket_;
  Deadline alarm_;
  Inlet inlet_;
  std::shared_ptr<Connector> connector_;  // while connecting

  State state_ = State::kNew;
  AnswerHandler* handler_ = nullptr;
  Time deadline_;
  Outlet outlet_{/*writable=*/false};
  int interim_answers_ = 0;  // number of 1xx answers before the final one
  bool processing_ = false;
  bool reused_ = false;        // the connection was kept after an earlier request
  bool answer_begun_ = false;  // a byte of the answer has come
  bool request_done_ = false;  // its last byte is in outlet_ or sent
  bool paused_ = false;        // the handler had no room for more of the answer
  bool head_only_ = false, keep_alive_ = false;
};

}  // namespace serin::net
