// audit_stream.cc: a line is written whole or not at all: it is no longer than what a pipe takes in one step (PIPE_BUF), and poll() has said that
// there is room for as much. Writing never waits, without changing flags of a descriptor that other processes share.

#include "router/notify/audit_stream.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <charconv>
#include <climits>

#include "router/control/wall_clock.h"
#include "router/view/history.h"
#include "runtime/base/schema_json.h"

namespace serin::router {
namespace {

constexpr const char* kNote = "audit-stream";
constexpr size_t kEntriesAtOnce = 100;
constexpr size_t kLongestText = 300;  // of one that made a line too long: the rest is in the store

/// JSON leaves DEL and the C1 controls (U+0080 to U+009F) as they are; a terminal that shows the line does not.
std::string harmless(const std::string& json) {
  std::string line;
  for (size_t i = 0; i < json.size(); ++i) {
    const auto next = static_cast<unsigned char>(i + 1 < json.size() ? json[i + 1] : 0);
    const bool two_bytes = json[i] == '\xC2' && next >= 0x80 && next <= 0x9F;
    if (json[i] == '\x7F' || two_bytes)
      line += fmt::format("\\u{:04x}", two_bytes ? next : 0x7F);
    else
      line += json[i];
    if (two_bytes) ++i;
  }
  return line;
}

struct AuditChange : view::HistoryEntry {
  std::string_view audit = "change";
};
constexpr auto kAuditChange = schema::extended<AuditChange>("AuditChange", "A change that is stored.", view::kHistoryEntry,
                                                            schema::field("audit", &AuditChange::audit, "The kind of line."));

struct RefusedRequest {
  std::string_view audit = "refused";
  std::string time;
  int64_t wall_ms = 0;
  std::string actor, peer, method, path;
  int status = 0;
  std::string error;
};
constexpr auto kRefusedRequest = schema::object<RefusedRequest>(
    "RefusedRequest", "A request for a change that was refused.", schema::field("audit", &RefusedRequest::audit, "The kind of line."),
    schema::field("time", &RefusedRequest::time, "In UTC.", {.kind = "date-time"}),
    schema::field("wall_ms", &RefusedRequest::wall_ms, "The same as Unix time in milliseconds."),
    schema::field("actor", &RefusedRequest::actor, "The caller."), schema::field("peer", &RefusedRequest::peer, "Its address."),
    schema::field("method", &RefusedRequest::method, "Of the request."), schema::field("path", &RefusedRequest::path, "Of the request."),
    schema::field("status", &RefusedRequest::status, "Of the answer."), schema::field("error", &RefusedRequest::error, "Its text."));

std::string change_line(const store::HistoryEntry& entry) { return harmless(schema::to_json(kAuditChange, {view::view_of(entry)})); }

}  // namespace

Result<bool> AuditStream::follow(store::Store& store) {
  if (seen_ < 0) {
    SERIN_TRY(const auto note, store.note(kNote));
    seen_ = 0;
    if (note) std::from_chars(note->data(), note->data() + note->size(), seen_);
  }
  while (true) {
    SERIN_TRY(auto entries, store.history_after(seen_, kEntriesAtOnce));
    if (entries.empty()) return true;
    const int64_t before = seen_;
    for (store::HistoryEntry& entry : entries) {
      std::string line = change_line(entry);
      if (line.size() >= PIPE_BUF) {
        entry.detail = entry.detail.substr(0, kLongestText) + " ...";
        line = change_line(entry);
      }
      if (!write(std::move(line))) break;
      seen_ = entry.id;
    }
    if (seen_ != before) SERIN_CHECK(store.set_note(kNote, std::to_string(seen_)));
    if (seen_ != entries.back().id) return false;
  }
}

void AuditStream::refused(const Refusal& refusal) const {
  const int64_t now = wall_milliseconds();
  (void)write(harmless(schema::to_json(kRefusedRequest, {.time = view::utc(now),
                                                         .wall_ms = now,
                                                         .actor = refusal.actor,
                                                         .peer = refusal.peer,
                                                         .method = refusal.method,
                                                         .path = refusal.path.substr(0, kLongestText),
                                                         .status = refusal.status,
                                                         .error = refusal.error.substr(0, kLongestText)})));
}

bool AuditStream::write(std::string line) const {
  line += '\n';
  pollfd room{.fd = descriptor_, .events = POLLOUT, .revents = 0};
  if (line.size() > PIPE_BUF || ::poll(&room, 1, 0) <= 0 || (room.revents & POLLOUT) == 0) return false;
  return ::write(descriptor_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace serin::router
