// client_connection.h: one connection of a Client: connects, sends one request at a time, reads its answer. For the .cc files of net only.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <vector>

#include "runtime/net/body_reader.h"
#include "runtime/net/buffer.h"
#include "runtime/net/client.h"
#include "runtime/net/deadline.h"
#include "runtime/net/head_parser.h"

namespace serin::net {

class ClientConnection;

/// One request from send() to its callback, over at most two connections.
struct Call::State {
  Origin origin;
  Outgoing request;
  Client::Callback callback;  ///< empty once called or cancelled
  Deadline::Clock::time_point deadline;
  bool retried = false;
  std::shared_ptr<ClientConnection> connection;
};

class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  /// What its Client wants to know. The connection is idle when `kept`, closed otherwise.
  class Owner {
   public:
    virtual void answered(const std::shared_ptr<ClientConnection>& connection, std::shared_ptr<Call::State> call, Result<Response> response,
                          bool kept) = 0;
    /// The other side had closed a kept connection before it saw the request.
    virtual void stale(const std::shared_ptr<ClientConnection>& connection, std::shared_ptr<Call::State> call) = 0;
    /// Closed while idle.
    virtual void lost(const std::shared_ptr<ClientConnection>& connection) = 0;

   protected:
    ~Owner() = default;
  };

  ClientConnection(boost::asio::io_context& io, Owner& owner, const ClientOptions& options, Origin origin);

  void connect(std::shared_ptr<Call::State> call);
  void send(std::shared_ptr<Call::State> call);
  /// Closes without a word to the owner.
  void close();
  /// Closes because nobody wants the answer any more.
  void abandon();
  void on_deadline();
  const Origin& origin() const { return origin_; }

 private:
  enum class State : uint8_t { kConnecting, kHead, kBody, kIdle, kClosed };

  void try_next_endpoint(const std::string& why_not_the_last);
  void write();
  void read();
  void on_read(const boost::system::error_code& failure, size_t bytes);
  void parse();
  bool parse_head();
  void finish();
  void end_of_stream(const boost::system::error_code& failure);
  void refuse(const Refusal& refusal);
  void fail(Code code, const std::string& what);

  Owner& owner_;  // outlives every connection that is not closed
  const ClientOptions options_;
  const Origin origin_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::ip::tcp::socket socket_;
  Deadline deadline_;
  std::vector<boost::asio::ip::tcp::endpoint> endpoints_;
  size_t next_endpoint_ = 0;

  State state_ = State::kConnecting;
  std::shared_ptr<Call::State> call_;
  bool reused_ = false;        // it has been kept after an earlier call
  bool answer_begun_ = false;  // a byte of the answer has come
  bool write_done_ = false;
  std::string out_;          // head of the request
  size_t written_ = 0;       // of head and body together
  int interim_answers_ = 0;  // 1xx, before the one that counts
  Buffer buffer_;
  HeadParser parser_;
  BodyReader reader_;
  Response response_;
  bool keep_alive_ = false;
  bool reading_ = false, reading_window_ = false;
};

}  // namespace serin::net
