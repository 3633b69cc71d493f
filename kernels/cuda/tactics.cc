// tactics.cc: the file's lines are "way milliseconds key".

#include "kernels/cuda/tactics.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace serin::kernels::cuda {

namespace {

constexpr const char* kFormat = "serin tactics 1: ";

}  // namespace

Tactics::Tactics(std::string path, std::string scope, std::string* note) : path_(std::move(path)), scope_(std::move(scope)) {
  if (path_.empty()) return;
  std::ifstream file(path_);
  std::string line;
  if (!std::getline(file, line)) return;
  if (line != kFormat + scope_) {
    if (note) *note = path_ + " is of '" + line + "', not of '" + scope_ + "': measuring anew";
    return;
  }
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    Choice choice;
    std::string key;
    if (!(fields >> choice.way >> choice.milliseconds >> std::ws) || !std::getline(fields, key) || choice.way < 0)
      continue;  // measured again
    choices_[key] = choice;
  }
}

Tactics::~Tactics() {
  if (path_.empty() || measured_ == 0) return;
  const std::string aside = path_ + "." + std::to_string(getpid());
  {
    std::ofstream file(aside);
    file << kFormat << scope_ << '\n';
    for (const auto& [key, choice] : choices_) file << choice.way << ' ' << choice.milliseconds << ' ' << key << '\n';
    if (!file.flush()) {
      std::remove(aside.c_str());
      return;
    }
  }
  if (std::rename(aside.c_str(), path_.c_str()) != 0) std::remove(aside.c_str());
}

int Tactics::choose(const std::string& key, int count, const std::function<std::optional<double>(int)>& measure) {
  const std::lock_guard lock(mutex_);
  if (const auto known = choices_.find(key); known != choices_.end() && known->second.way < count) return known->second.way;
  Choice best;
  for (int way = 0; way < count; ++way) {
    const std::optional<double> milliseconds = measure(way);
    if (milliseconds && (best.way < 0 || *milliseconds < best.milliseconds)) best = {way, *milliseconds};
  }
  if (best.way < 0) return -1;
  choices_[key] = best;
  ++measured_;
  return best.way;
}

size_t Tactics::measured() const {
  const std::lock_guard lock(mutex_);
  return measured_;
}

}  // namespace serin::kernels::cuda
