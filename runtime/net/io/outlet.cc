#include "runtime/net/io/outlet.h"

#include <algorithm>
#include <cerrno>

#include "runtime/net/message/message_writer.h"

namespace serin::net {
namespace {

constexpr size_t kCopiedBytes = 4 * 1024;    // of a body, sent from behind its head
constexpr size_t kChunkedBytes = 64 * 1024;  // of a chunked body that the socket has not taken yet

}  // namespace

Outlet::Taken Outlet::write(Socket& socket, std::string_view bytes, bool last) {
  const size_t given = bytes.size();
  if (chunked_) {
    if (!bytes.empty() && text_.size() - sent_ > kChunkedBytes) {  // the end alone has room always: a caller could not give it again
      waited_for_ = true;
      return {};
    }
    append_chunk(bytes, last, text_);
    bytes = {};
  }
  if (bytes.size() <= kCopiedBytes && text_.size() - sent_ <= kCopiedBytes) {  // one piece costs the kernel less than two
    text_.append(bytes);
    bytes = {};
  }
  size_t taken = 0;
  send(socket, bytes, taken);
  if (taken == bytes.size()) return {given, true};
  waited_for_ = true;
  return {taken, false};
}

bool Outlet::flush(Socket& socket) {
  size_t none = 0;
  return send(socket, {}, none);
}

/// text_, then `bytes`. Text that is sent is let go at once: a body of many pieces never lies here whole.
bool Outlet::send(Socket& socket, std::string_view bytes, size_t& taken) {
  while (writable_ && (held_ || sent_ + taken < text_.size() + bytes.size())) {
    const Socket::Done done = socket.write(std::string_view(text_).substr(sent_), bytes.substr(taken));
    held_ = done.held;
    if (done.error == EAGAIN || done.held) writable_ = false;
    if (done.error != 0 && done.error != EAGAIN) {
      broken_ = true;
      sent_ = text_.size();
      taken = bytes.size();
      break;
    }
    const size_t of_text = std::min(done.bytes, text_.size() - sent_);
    sent_ += of_text;
    taken += done.bytes - of_text;
  }
  if (sent_ == text_.size()) {
    text_.clear();
    sent_ = 0;
  }
  return !broken_;
}

}  // namespace serin::net
