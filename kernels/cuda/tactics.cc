// tactics.cc: keeps the measured times of kernels in a file, whose lines are "way milliseconds idle|busy key".

#include "kernels/cuda/tactics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "kernels/cuda/kept_files.h"

namespace serin::kernels::cuda {

namespace {

constexpr const char* kFormat = "serin tactics 3: ";
constexpr const char *kIdle = "idle", *kBusy = "busy";  ///< the device, while it was measured
constexpr mode_t kOwnersAlone = 0600;

bool write_whole(int file, const std::string& text) { return ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()); }

}  // namespace

Tactics::Tactics(const std::string& folder, std::string scope, std::string* note, const Traffic* traffic)
    : scope_(std::move(scope)),
      path_(folder.empty() ? "" : folder + "/tactics-" + digest(scope_)),
      traffic_(traffic),
      keeping_(!folder.empty()) {
  if (!keeping_) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    keeping_ = false;
    if (note) *note = "measurements are not kept, " + folder + " cannot be written";
  }
  load();
}

Tactics::~Tactics() {
  if (file_ >= 0) ::close(file_);
}

void Tactics::load() {
  std::ifstream file(path_);
  std::string line;
  usable_ = std::getline(file, line) && line == kFormat + scope_ && !file.eof();
  while (usable_ && std::getline(file, line)) {
    torn_ = file.eof();
    std::istringstream fields(line);
    Choice choice{.of_before = true};
    std::string device, key;
    if (torn_ || !(fields >> choice.way >> choice.milliseconds >> device >> std::ws) || !std::getline(fields, key) || choice.way < 0 ||
        (device != kIdle && device != kBusy))
      continue;  // measured again
    choice.disturbed = device == kBusy;
    choices_[key] = choice;
  }
}

/// Whatever else lies at the path makes room; a file that another process made in the meantime is taken.
bool Tactics::open_file() {
  if (file_ >= 0) return true;
  if (!usable_) {
    const std::string first_line = kFormat + scope_, aside = path_ + "." + std::to_string(::getpid());
    const int made = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kOwnersAlone);
    if (made < 0) return false;
    const bool written = write_whole(made, first_line + "\n");
    ::close(made);
    std::ifstream there(path_);
    std::string line;
    if (written && there && !(std::getline(there, line) && line == first_line)) std::rename(aside.c_str(), path_.c_str());
    [[maybe_unused]] const int linked = written && !there ? ::link(aside.c_str(), path_.c_str()) : 0;  // fails where there is one now
    std::remove(aside.c_str());
  }
  file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  return file_ >= 0;
}

void Tactics::keep(const std::string& key, const Choice& choice) {
  if (!keeping_) return;
  std::ostringstream line;
  line << (std::exchange(torn_, false) ? "\n" : "") << choice.way << ' ' << choice.milliseconds << ' ' << (choice.disturbed ? kBusy : kIdle)
       << ' ' << key << '\n';
  keeping_ = open_file() && write_whole(file_, line.str());
}

int Tactics::known(const std::string& key, int count) const {
  const MutexLock lock(mutex_);
  const auto found = choices_.find(key);
  if (found == choices_.end() || found->second.way >= count) return -1;
  const bool again = found->second.disturbed && found->second.of_before && !busy();
  return again ? -1 : found->second.way;
}

Tactics::Choice Tactics::fastest(int count, const std::function<std::optional<double>(int)>& measure, const SearchLimits& limits) const {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  Choice best;
  int tried = 0, in_vain = 0;
  for (int way = 0; way < count; ++way) {
    if (best.way >= 0 && (tried >= limits.measured || in_vain >= limits.in_vain || Clock::now() - begin >= limits.time)) break;
    const std::optional<double> milliseconds = measure(way);
    if (!milliseconds) continue;
    if (++tried == 1) begin = Clock::now();  // before, a library may have loaded its code
    const bool faster = best.way < 0 || *milliseconds < best.milliseconds;
    in_vain = faster ? 0 : in_vain + 1;
    if (faster) best = {way, *milliseconds};
  }
  return best;
}

int Tactics::choose(const std::string& key, int count, const std::function<std::optional<double>(int)>& measure,
                    const SearchLimits& limits) {
  if (const int way = known(key, count); way >= 0) return way;
  const MutexLock measuring(measuring_);
  if (const int way = known(key, count); way >= 0) return way;  // another thread measured it while this one waited
  const uint64_t runs_before = runs();
  const bool busy_before = busy();
  Choice best = fastest(count, measure, limits);
  if (best.way < 0) return -1;
  best.disturbed = busy_before || runs() != runs_before;
  const MutexLock lock(mutex_);
  choices_[key] = best;
  ++measured_;
  keep(key, best);
  return best.way;
}

void Tactics::forget(const std::string& key) {
  const MutexLock lock(mutex_);
  choices_.erase(key);
}

size_t Tactics::measured() const {
  const MutexLock lock(mutex_);
  return measured_;
}

}  // namespace serin::kernels::cuda
