// h2_client.h: the HTTP/2 connections to one server: each carries many requests, and another is opened when all are full.
//
// For the .cc files of net only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/net/client/connector.h"
#include "runtime/net/client_options.h"
#include "runtime/net/deadline.h"
#include "runtime/net/http2/h2_session.h"
#include "runtime/net/stream.h"

namespace serin::net {

class H2ClientConnection;
class H2ClientStream;

class H2Pool {
 public:
  H2Pool(Loop& loop, const Origin& origin, const ClientOptions& options);
  ~H2Pool();  ///< ends requests in progress without a call to the handlers

  ClientStream& open(AnswerHandler& handler, std::chrono::steady_clock::time_point deadline, bool fresh);
  size_t connections() const { return all_.size(); }

 private:
  friend class H2ClientConnection;
  void drop(H2ClientConnection& connection);

  Loop& loop_;
  const Origin origin_;
  const ClientOptions options_;
  const std::string host_;
  std::vector<std::shared_ptr<H2ClientConnection>> all_;
};

class H2ClientConnection final : public H2Session {
 public:
  explicit H2ClientConnection(H2Pool& pool);
  ~H2ClientConnection() override;

  void connect();
  /// Closes without a call to any handler.
  void close();
  /// Whether it accepts more requests.
  bool takes_more() const;
  size_t open_streams() const { return all_.size() - free_.size(); }
  H2ClientStream& open(AnswerHandler& handler, std::chrono::steady_clock::time_point deadline);

  // For its streams.
  const std::string& host() const { return pool_->host_; }
  const ClientOptions& options() const { return pool_->options_; }
  void release(H2ClientStream& stream);
  /// A request got no answer in time: unless the server has sent anything since, no further request must use this connection.
  void doubt(std::chrono::steady_clock::time_point since);
  void has_answered() { used_ = true; }
  bool stood() const { return stood_; }
  /// It was useful before, and nothing has arrived from the server since then.
  bool may_have_closed_before(std::chrono::steady_clock::time_point when) const { return used_ && !heard_since(when); }

 private:
  H2Stream* accept_stream(int32_t) override { return nullptr; }  // server push is disabled
  void on_goaway() override { retiring_ = true; }
  void on_over(std::string_view what) override;
  void on_rest() override;
  void end(Code code, const std::string& what);

  H2Pool* pool_;  // outlives every connection that is not dropped
  std::shared_ptr<Connector> connector_;
  std::vector<std::unique_ptr<H2ClientStream>> all_;
  std::vector<H2ClientStream*> free_;
  Deadline alarm_;
  bool idle_ = false;
  bool stood_ = false, used_ = false;
  bool retiring_ = false;  // no further requests use it
};

class H2ClientStream final : public H2Stream, public ClientStream {
 public:
  explicit H2ClientStream(H2ClientConnection& connection);

  void begin(AnswerHandler& handler, std::chrono::steady_clock::time_point deadline);
  /// The connection is lost.
  void lose(Code code, std::string_view what);

  void begin_fields() override;
  void fields_done(bool end) override;
  void advance() override;

  void begin_request(const RequestHead& head) override;
  size_t write(std::string_view bytes, bool last) override;
  void read_more() override { H2Stream::read_more(); }
  void set_deadline(std::chrono::steady_clock::time_point deadline) override;
  void cancel() override;

 private:
  BodyHandler* receiver() override { return answered_ ? handler_ : nullptr; }
  void tell_head();
  void go_on();
  void fail(Code code, std::string_view what, bool stale = false, bool alone = false);

  H2ClientConnection& connection_;
  AnswerHandler* handler_ = nullptr;
  Deadline alarm_;
  std::chrono::steady_clock::time_point began_;
  int interim_answers_ = 0;  // number of 1xx answers before the final one
  bool answered_ = false;    // the handler has the head
  bool bodyless_ = false;    // the request ends with its head
};

}  // namespace serin::net
