#include "runtime/registry/peers.h"

#include "runtime/base/log.h"
#include "runtime/registry/shared_download.h"

namespace serin::registry {
namespace {

constexpr uint64_t kSmallFile = 64 * 1024;  // bytes: sharing takes longer than reading

}  // namespace

Result<std::shared_ptr<Peers>> Peers::open(const PeerOptions& options, metrics::Registry& metrics) {
  SERIN_TRY(std::unique_ptr<PeerNames> names, PeerNames::parse(options.names));
  std::shared_ptr<Peers> peers(new Peers(
      {.names = std::move(names), .tls = options.peer_tls, .certificate_name = options.certificate_name, .counts = PeerCounts(metrics)}));
  const PeerNames& known = *peers->group_.names;
  net::ServerOptions listen{.address = options.address, .port = known.port(), .tls = options.tls, .metrics = &metrics};
  SERIN_TRY(peers->listener_, PeerListener::open(peers->loops_, std::move(listen), known.server(), peers->group_.counts.to_peers));
  log::info("registry peers: offering files of models at {} port {}{}", options.address, known.port(), options.tls ? " with TLS" : "");
  return peers;
}

Status Peers::download(const HttpFiles& registry, const std::string& path, const Contents& wanted, const std::string& to) {
  const auto alone = [&]() -> Status {
    SERIN_CHECK(registry.download(path, wanted, to));
    group_.counts.from_registry->add(wanted.bytes);
    return {};
  };
  if (wanted.bytes <= kSmallFile) return alone();
  SERIN_TRY(const std::shared_ptr<ChunkedBlob> blob, ChunkedBlob::open(to, wanted.bytes));
  listener_->offer(wanted.digest, blob);
  Status done = SharedDownload(group_, loops_.loop(0), registry, path, wanted, *blob).run();
  if (!done) {
    listener_->withdraw(wanted.digest);
    if (done.error().code != Code::kUnsupported) return done;
    log::warning("{}; the file is read from there alone", done.error().message);
    blob->remove();
    SERIN_CHECK(alone());
  }
  offer(wanted, to);
  return {};
}

void Peers::offer(const Contents& contents, const std::string& file) {
  listener_->offer(contents.digest, ChunkedBlob::whole(file, contents.bytes));
}

}  // namespace serin::registry
