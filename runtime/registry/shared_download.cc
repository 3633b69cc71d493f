#include "runtime/registry/shared_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <utility>

#include "runtime/base/json_at.h"
#include "runtime/base/log.h"
#include "runtime/registry/peer_listener.h"
#include "runtime/registry/sha256.h"

namespace serin::registry {
namespace {

using namespace std::chrono_literals;

constexpr auto kConnect = 1000ms, kSilent = 5000ms;  // of a peer
constexpr auto kStatesTime = 2s, kChunkTime = 30s;   // for a whole answer of a peer
constexpr auto kFirstLook = 1s;                      // before the registry is read: what do the others have?
constexpr auto kNextLookup = 2s, kRetry = 1s, kPauseAfterFailure = 2s;
constexpr auto kTurn = 50ms;
constexpr auto kSlowPeers = 15s;  // nothing comes from them: the registry is read, whoever offers what
constexpr int kFailures = 3;      // of chunks; after that a peer is not asked for this blob
constexpr uint64_t kRoomForStates = 1 << 20;

/// Certificates that do not fit are an error of the installation. A peer that is away is none.
bool is_about_tls(const Error& error) { return error.message.find("TLS: ") != std::string::npos; }

struct States {
  std::string server, chunks;
};

/// Nothing: they are those of another blob, or of a program that divides blobs otherwise.
std::optional<States> parse_states(const std::string& text, uint64_t bytes) {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(text, error);
  if (error || json_at::number(value, "/bytes") != static_cast<double>(bytes) ||
      json_at::number(value, "/chunk_bytes") != static_cast<double>(chunk_bytes(bytes)))
    return std::nullopt;
  return States{json_at::text(value, "/server"), json_at::text(value, "/chunks")};
}

}  // namespace

SharedDownload::SharedDownload(const PeerGroup& group, net::Loop& lookups, const HttpFiles& registry, const std::string& path,
                               const Contents& wanted, ChunkedBlob& blob)
    : group_(group),
      peers_(*group.names),
      lookups_(lookups),
      registry_(registry),
      path_(path),
      wanted_(wanted),
      blob_(blob),
      plan_(peers_.server(), wanted) {
  const std::string states = blob.states();
  for (size_t chunk = 0; chunk < states.size(); ++chunk) plan_.put(chunk, states[chunk]);
}

SharedDownload::~SharedDownload() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  for (const auto& worker : workers_) {
    worker->session.stop();
    worker->thread.join();
  }
}

Status SharedDownload::run() {
  bool continued = blob_.states().find_first_of({kRead, kTaken}) != std::string::npos;
  while (true) {
    SERIN_CHECK(gather());
    SERIN_TRY(const std::string digest, blob_.digest());
    if (digest == wanted_.digest) break;
    SERIN_TRY(const bool found, find_wrong_source());
    if (found) continue;
    if (!std::exchange(continued, false)) {
      blob_.remove();
      return Error{Code::kCorrupt,
                   fmt::format("{}: has other contents than its digest {} says (it has {})", registry_.url(path_), wanted_.digest, digest)};
    }
    const MutexLock lock(mutex_);  // what an earlier start has read may have gone with the power
    for (size_t chunk = 0; chunk < plan_.states().size(); ++chunk) put(chunk, kMissing);
  }
  SERIN_CHECK(blob_.finish());
  report();
  return {};
}

void SharedDownload::put(size_t chunk, char state, std::optional<size_t> peer) {
  plan_.put(chunk, state, peer);
  if (const Status done = blob_.put(chunk, state); !done && disk_) disk_ = done;
}

/// Until all chunks are here.
Status SharedDownload::gather() {
  while (true) {
    look_for_peers();
    std::optional<ChunkRun> run;
    {
      const MutexLock lock(mutex_);
      if (!disk_) return disk_.error();
      if (plan_.whole()) return {};
      const auto now = Clock::now();
      if (all_asked() || now > begun_ + kFirstLook) run = plan_.next_from_registry(now);
      if (!run && now - last_taken_ > kSlowPeers) run = plan_.next_missing();
      for (size_t i = 0; run && i < run->count; ++i) put(run->first + i, kReading);
      if (!run) changed_.wait_until(mutex_, now + kTurn);
    }
    if (!run) continue;
    const Status done = read(*run);
    if (done) continue;
    const MutexLock lock(mutex_);
    if (done.error().code == Code::kUnsupported || !disk_ || !plan_.others_may_help(Clock::now())) return done;
    changed_.wait_until(mutex_, Clock::now() + kRetry);
  }
}

Status SharedDownload::read(const ChunkRun& run) {
  const size_t last = run.first + run.count;
  size_t chunk = run.first;
  uint64_t at = chunk_span(wanted_.bytes, chunk).from;
  const Status done = registry_.read_range(path_, {at, chunk_span(wanted_.bytes, last - 1).to}, [&](std::string_view bytes) -> Status {
    SERIN_CHECK(blob_.write(at, bytes));
    at += bytes.size();
    read_ += bytes.size();
    group_.counts.from_registry->add(bytes.size());
    if (at < chunk_span(wanted_.bytes, chunk).to) return {};
    const MutexLock lock(mutex_);
    while (chunk < last && at >= chunk_span(wanted_.bytes, chunk).to) put(chunk++, kRead);
    return {};
  });
  const MutexLock lock(mutex_);
  while (chunk < last) put(chunk++, kMissing);
  return done;
}

// ---- peers ----

bool SharedDownload::all_asked() const {
  return peers_.looked_up() && std::ranges::all_of(workers_, [](const auto& worker) { return worker->asked; });
}

/// Servers that start later are found while the download is under way.
void SharedDownload::look_for_peers() {
  if (Clock::now() >= next_look_) {
    peers_.look_up(lookups_);
    next_look_ = Clock::now() + kNextLookup;
  }
  const MutexLock lock(mutex_);
  for (const auto& [address, name] : peers_.peers()) {
    const bool known = std::ranges::any_of(workers_, [&](const auto& worker) { return worker->address == address; });
    if (known || peers_.refused(address)) continue;
    const size_t peer = workers_.size();
    workers_.push_back(std::make_unique<Worker>(address, options_for(name)));
    workers_.back()->thread = std::thread([this, peer] { work(peer); });
  }
}

net::Origin SharedDownload::origin_of(const Worker& worker) const {
  return {.host = worker.address, .port = peers_.port(), .secure = group_.tls != nullptr};
}

net::ClientOptions SharedDownload::options_for(const std::string& name) const {
  return {.connect_timeout = kConnect,
          .silence_timeout = kSilent,
          .response_bytes = chunk_bytes(wanted_.bytes) + kRoomForStates,
          .tls = group_.tls,
          .server_name = group_.certificate_name.empty() ? name : group_.certificate_name};
}

std::chrono::milliseconds SharedDownload::pause_after(Heard heard) const {
  constexpr auto kEach = 20ms, kLeast = 100ms;  // a server is asked about as often, however many there are
  if (heard != Heard::kStates) return heard == Heard::kOtherBlobs ? 300ms : 500ms;
  return std::max<std::chrono::milliseconds>(kLeast, kEach * peers_.peers().size());
}

void SharedDownload::work(size_t peer) {
  for (int failures = 0;;) {
    const Heard heard = ask(peer);
    auto next = Clock::now() + pause_after(heard);
    Status taken;
    while (heard == Heard::kStates && taken && Clock::now() < next) {
      std::optional<size_t> chunk;
      {
        const MutexLock lock(mutex_);
        if (!ending_) chunk = plan_.next_from_peer(peer);
        if (chunk) put(*chunk, kFetching);
      }
      if (!chunk) break;
      taken = take(peer, *chunk);
    }
    const MutexLock lock(mutex_);
    Worker& self = *workers_[peer];
    if (!taken && taken.error().code != Code::kOverloaded) {
      plan_.lose(peer);
      ++failures;
      next = Clock::now() + kPauseAfterFailure;
      log::debug("registry peers: {}: {}", self.address, taken.error().message);
    }
    self.ended = self.ended || heard == Heard::kItself || failures == kFailures;
    changed_.notify_all();
    changed_.wait_until(mutex_, next, [&]() SERIN_REQUIRES(mutex_) { return ending_ || self.ended || Clock::now() >= next; });
    if (ending_ || self.ended) return;
  }
}

SharedDownload::Heard SharedDownload::ask(size_t peer) {
  Worker* self = nullptr;
  {
    const MutexLock lock(mutex_);
    self = workers_[peer].get();
  }
  const auto answer = self->session.send(origin_of(*self), {.target = fmt::format("{}{}", kBlobsOfPeers, wanted_.digest)}, kStatesTime);
  const auto said = answer && answer->status == 200 ? parse_states(answer->body, wanted_.bytes) : std::nullopt;
  const MutexLock lock(mutex_);
  self->asked = true;
  changed_.notify_all();
  if (!answer && is_about_tls(answer.error()) && !std::exchange(self->warned, true))
    log::warning("registry peers: {}: {}", self->address, answer.error().message);
  if (said && said->server == peers_.server()) return Heard::kItself;
  if (said && !self->ended && plan_.hear(peer, said->server, said->chunks, Clock::now())) return Heard::kStates;
  plan_.lose(peer);
  return answer ? Heard::kOtherBlobs : Heard::kNothing;
}

/// kOverloaded: it has too much to do; the chunk may be asked for again.
Status SharedDownload::take(size_t peer, size_t chunk) {
  Worker* self = nullptr;
  {
    const MutexLock lock(mutex_);
    self = workers_[peer].get();
  }
  const Span span = chunk_span(wanted_.bytes, chunk);
  auto answer = self->session.send(origin_of(*self), {.target = fmt::format("{}{}/{}", kBlobsOfPeers, wanted_.digest, chunk)}, kChunkTime);
  Status done;
  if (!answer)
    done = answer.error();
  else if (answer->status != 200)
    done = Error{answer->status == 503 ? Code::kOverloaded : Code::kNotFound, fmt::format("chunk {}: answers {}", chunk, answer->status)};
  else if (answer->body.size() != span.to - span.from)
    done = Error{Code::kCorrupt, fmt::format("chunk {}: has {} bytes instead of {}", chunk, answer->body.size(), span.to - span.from)};
  else
    done = blob_.write(span.from, answer->body);
  const MutexLock lock(mutex_);
  const bool here = done && !self->ended;
  put(chunk, here ? kTaken : kMissing, peer);
  if (here) {
    self->bytes += span.to - span.from;
    group_.counts.from_peers->add(span.to - span.from);
    last_taken_ = Clock::now();
  }
  if (!done && done.error().code == Code::kCorrupt) group_.counts.refused_chunks->add();
  changed_.notify_all();
  return done;
}

// ---- wrong bytes ----

Result<std::string> SharedDownload::read_again(size_t chunk) {
  const Span span = chunk_span(wanted_.bytes, chunk);
  std::string bytes;
  SERIN_CHECK(registry_.read_range(path_, {span.from, span.to}, [&](std::string_view more) -> Status {
    bytes += more;
    return {};
  }));
  read_ += bytes.size();
  group_.counts.from_registry->add(bytes.size());
  return bytes;
}

/// Compares chunks that came from others with those of the registry, one of each source in turn. At the first that differs, all of that source are
/// forgotten. False: none differs.
Result<bool> SharedDownload::find_wrong_source() {
  std::map<std::optional<size_t>, std::vector<size_t>> taken;
  {
    const MutexLock lock(mutex_);
    for (size_t chunk = 0; chunk < plan_.states().size(); ++chunk)
      if (plan_.states()[chunk] == kTaken) taken[plan_.source(chunk)].push_back(chunk);
  }
  bool more = true;
  for (size_t round = 0; std::exchange(more, false); ++round) {
    for (const auto& [peer, chunks] : taken) {
      if (round >= chunks.size()) continue;
      more = true;
      const size_t chunk = chunks[round];
      SERIN_TRY(const std::string here, blob_.read(chunk));
      SERIN_TRY(const std::string there, read_again(chunk));
      const bool same = here == there;
      if (!same) SERIN_CHECK(blob_.write(chunk_span(wanted_.bytes, chunk).from, there));
      const MutexLock lock(mutex_);
      put(chunk, kRead);
      if (same) continue;
      forget(peer);
      return true;
    }
  }
  return false;
}

void SharedDownload::forget(std::optional<size_t> peer) {
  uint64_t refused = 1;  // the one that differed was read again
  for (size_t chunk = 0; chunk < plan_.states().size(); ++chunk) {
    if (plan_.states()[chunk] != kTaken || plan_.source(chunk) != peer) continue;
    put(chunk, kMissing);
    ++refused;
  }
  if (!peer) return;  // of an earlier start
  group_.counts.refused_chunks->add(refused);
  Worker& worker = *workers_[*peer];
  worker.ended = true;
  worker.bytes = 0;
  plan_.lose(*peer);
  if (peers_.refuse(worker.address)) group_.counts.refused_peers->add(1);
  changed_.notify_all();
  log::error("registry peers: {} has sent wrong bytes of {}; nothing is taken from it any more", worker.address, wanted_.digest);
}

void SharedDownload::report() {
  const MutexLock lock(mutex_);
  uint64_t taken = 0;
  size_t helpers = 0;
  for (const auto& worker : workers_) {
    taken += worker->bytes;
    helpers += worker->bytes > 0;
  }
  log::info("{}: {} bytes were read from there, {} from {} peers", registry_.url(path_), read_, taken, helpers);
}

}  // namespace serin::registry
