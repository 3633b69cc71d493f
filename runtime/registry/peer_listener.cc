#include "runtime/registry/peer_listener.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/base/number.h"
#include "runtime/net/body_source.h"
#include "runtime/registry/chunk_plan.h"

namespace serin::registry {
namespace {

constexpr int kMostSending = 32;       // chunks at once, of at most 4 MiB: peers ask again
constexpr size_t kMostPeers = 256;     // connections
constexpr size_t kLargestRequest = 0;  // bytes of a body

/// A chunk in memory is counted until its client has nearly all of it.
class ChunkBody final : public net::BodySource {
 public:
  ChunkBody(std::string bytes, std::shared_ptr<std::atomic<int>> sending) : bytes_(std::move(bytes)), sending_(std::move(sending)) {}
  ~ChunkBody() override { --*sending_; }
  ChunkBody(const ChunkBody&) = delete;
  ChunkBody& operator=(const ChunkBody&) = delete;

  void begin(std::function<void()> /*more*/) override {}
  std::optional<std::string> pull() override { return std::exchange(bytes_, std::nullopt); }

 private:
  std::optional<std::string> bytes_;
  const std::shared_ptr<std::atomic<int>> sending_;
};

net::Response states_answer(const std::string& server, const ChunkedBlob& blob) {
  std::string states = blob.states();
  for (char& state : states)
    if (state != kRead && state != kReading) state = kMissing;  // what is not offered is nobody's business
  net::Response response;
  response.headers.set("Content-Type", "application/json");
  response.body = boost::json::serialize(boost::json::object{
      {"server", server}, {"bytes", blob.bytes()}, {"chunk_bytes", chunk_bytes(blob.bytes())}, {"chunks", std::move(states)}});
  return response;
}

net::Response not_here() { return net::json_error(404, "this server does not offer it"); }

}  // namespace

Result<std::unique_ptr<PeerListener>> PeerListener::open(net::Loops& loops, net::ServerOptions options, std::string server,
                                                         std::shared_ptr<metrics::Counter> sent) {
  std::unique_ptr<PeerListener> listener(new PeerListener(std::move(server), std::move(sent)));
  options.name = "registry-peers";
  options.limits.connections = kMostPeers;
  options.limits.body_bytes = kLargestRequest;
  const auto handle = [self = listener.get()](const net::Request& request, net::Responder responder) {
    self->answer(request, std::move(responder));
  };
  SERIN_TRY(listener->server_, net::Server::start(loops, std::move(options), handle));
  return listener;
}

void PeerListener::offer(const std::string& digest, std::shared_ptr<const ChunkedBlob> blob) {
  const MutexLock lock(mutex_);
  offered_[digest] = std::move(blob);
}

void PeerListener::withdraw(const std::string& digest) {
  const MutexLock lock(mutex_);
  offered_.erase(digest);
}

std::shared_ptr<const ChunkedBlob> PeerListener::find(std::string_view digest) const {
  const MutexLock lock(mutex_);
  const auto found = offered_.find(digest);
  return found == offered_.end() ? nullptr : found->second;
}

void PeerListener::answer(const net::Request& request, net::Responder responder) {
  if (request.method != "GET") return responder.send(net::json_error(405, "only GET"));
  std::string_view path = request.path;
  if (!path.starts_with(kBlobsOfPeers)) return responder.send(not_here());
  path.remove_prefix(kBlobsOfPeers.size());
  const size_t slash = path.find('/');
  auto blob = find(path.substr(0, slash));
  if (!blob) return responder.send(not_here());
  if (slash == std::string_view::npos) return responder.send(states_answer(server_name_, *blob));
  const auto chunk = parse_number<size_t>(path.substr(slash + 1));
  const std::string states = blob->states();
  if (!chunk || *chunk >= states.size() || states[*chunk] != kRead) return responder.send(not_here());
  if (sending_->fetch_add(1) >= kMostSending) {
    --*sending_;
    return responder.send(net::json_error(503, "too many chunks are being sent; try again"));
  }
  send_chunk(std::move(blob), *chunk, std::move(responder));
}

void PeerListener::send_chunk(std::shared_ptr<const ChunkedBlob> blob, size_t chunk, net::Responder responder) {
  const auto read = std::make_shared<Result<std::string>>(Error{Code::kIo, "it was not read"});
  net::Loop& loop = responder.loop();
  loop.aside([read, blob = std::move(blob), chunk] { *read = blob->read(chunk); },
             [read, sending = sending_, sent = sent_, responder = std::move(responder)]() mutable {
               if (!*read) {
                 --*sending;
                 return responder.send(not_here());
               }
               sent->add((*read)->size());
               net::Response response;
               response.headers.set("Content-Type", "application/octet-stream");
               response.source = std::make_shared<ChunkBody>(std::move(**read), sending);
               responder.send(std::move(response));
             });
}

}  // namespace serin::registry
