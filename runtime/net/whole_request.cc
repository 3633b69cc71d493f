#include "runtime/net/whole_request.h"

#include <algorithm>

#include "runtime/base/log.h"

namespace serin::net {

void WholeRequest::on_request(Head& head) {
  request_ = Request();
  request_.method = std::move(head.method);
  request_.target = std::move(head.target);
  request_.path = std::move(head.path);
  request_.query = std::move(head.query);
  request_.headers = std::move(head.headers);
  request_.peer = stream_.peer();
  body_.take();
}

void WholeRequest::on_progress(bool end) {
  if (!end) return;
  request_.body = body_.take();
  responder_ = std::make_shared<Responder::State>();
  responder_->loop = &loop_;
  responder_->request = weak_from_this();
  const auto mine = responder_;  // the handler may answer at once, and the next request begin
  try {
    handler_->handle(std::move(request_), Responder(mine));
  } catch (const std::exception& e) {
    log::error("{}: the handler of a request threw: {}", handler_->name, e.what());
    answer(*mine, json_error(500, "internal error"));
  }
}

void WholeRequest::answer(const Responder::State& responder, Response response) {
  if (&responder != responder_.get()) return;
  responder_->on_cancel = nullptr;  // it may hold what holds the Responder
  responder_.reset();
  response_ = std::move(response);
  if (response_.status < 200 || response_.status > 599) {
    log::error("{}: an answer has status {}", handler_->name, response_.status);
    response_ = json_error(500, "internal error");
  }
  written_ = 0;
  stream_.begin_answer(
      {.status = response_.status, .headers = response_.headers, .length = response_.body.size(), .close = response_.close});
  write();
}

void WholeRequest::write() { written_ += stream_.write(std::string_view(response_.body).substr(written_), /*last=*/true); }

void WholeRequest::on_gone() {
  const auto responder = std::exchange(responder_, nullptr);
  if (!responder) return;
  responder->cancelled.store(true);
  if (const auto work = std::exchange(responder->on_cancel, nullptr)) work();
}

}  // namespace serin::net
