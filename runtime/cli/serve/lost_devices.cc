#include "runtime/cli/serve/lost_devices.h"

#include <fmt/chrono.h>

#include "runtime/base/log.h"

namespace serin::cli {

bool LostDevices::look(const serving::Catalogue& now) {
  constexpr auto kPaused = std::chrono::seconds(15);
  const auto time = std::chrono::steady_clock::now();
  const bool was_paused =
      last_look_ && time - *last_look_ > kPaused;  // the process was: who waits for a device may not have come to see that it has ended
  last_look_ = time;
  if (hung_.count() > 0 && !was_paused && devices_.hang(hung_)) hang_ = true;
  const Status live = now.live(&devices_);
  if (live || grace_.count() == 0) {
    dead_since_.reset();
    return true;
  }
  if (!dead_since_) dead_since_ = time;
  if (time - *dead_since_ < grace_) return true;
  log::error("not live for {}, so that is the end (--exit-when-lost): {}", grace_, live.error().message);
  return false;
}

}  // namespace serin::cli
