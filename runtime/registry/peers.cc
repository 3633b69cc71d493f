#include "runtime/registry/peers.h"

#include "runtime/base/log.h"
#include "runtime/registry/shared_download.h"

namespace serin::registry {
namespace {

constexpr uint64_t kSmallFile = 64 * 1024;  // bytes: sharing takes longer than reading

}  // namespace

Result<std::shared_ptr<Peers>> Peers::open(std::string_view names, const std::string& address) {
  SERIN_TRY(std::unique_ptr<PeerNames> parsed, PeerNames::parse(names));
  std::shared_ptr<Peers> peers(new Peers(std::move(parsed)));
  const PeerNames& known = *peers->names_;
  SERIN_TRY(peers->listener_, PeerListener::open(peers->loops_, address, known.port(), known.server()));
  log::info("registry peers: offering files of models at {} port {}", address, known.port());
  return peers;
}

Status Peers::download(const HttpFiles& registry, const std::string& path, const Contents& wanted, const std::string& to) {
  if (wanted.bytes <= kSmallFile) return registry.download(path, wanted, to);
  SERIN_TRY(const std::shared_ptr<ChunkedBlob> blob, ChunkedBlob::open(to, wanted.bytes));
  listener_->offer(wanted.digest, blob);
  Status done = SharedDownload(*names_, loops_.loop(0), registry, path, wanted, *blob).run();
  if (!done) {
    listener_->withdraw(wanted.digest);
    if (done.error().code != Code::kUnsupported) return done;
    log::warning("{}; the file is read from there alone", done.error().message);
    blob->remove();
    SERIN_CHECK(registry.download(path, wanted, to));
  }
  offer(wanted, to);
  return {};
}

void Peers::offer(const Contents& contents, const std::string& file) {
  listener_->offer(contents.digest, ChunkedBlob::whole(file, contents.bytes));
}

}  // namespace serin::registry
