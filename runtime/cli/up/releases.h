// releases.h: the releases that `serin up` has started, one for each model at most.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/result.h"
#include "runtime/cli/up/model_folders.h"

namespace serin::cli {

class Releases {
 public:
  explicit Releases(std::string logs) : logs_(std::move(logs)) {}
  Releases(const Releases&) = delete;
  Releases& operator=(const Releases&) = delete;
  /// Ends them. They go on when their model is released again.
  ~Releases();

  /// Also true for ten seconds after one that was not decided, and after one that was asked for in a wrong way, until its policy changes.
  bool busy(const std::string& model) const;
  /// `versions`: what was in the model's folder. `policy`: its release.yaml, which need not exist.
  Status begin(const std::string& model, const ModelFolders::Versions& versions, const std::string& policy,
               const std::vector<std::string>& arguments);

  struct Ended {
    std::string model;
    ModelFolders::Versions versions;
    bool decided = false;  ///< promoted or stopped: trying again would change nothing
  };
  /// Passes on what they print, a line at a time, and returns those that have ended.
  std::vector<Ended> look(const std::function<void(const std::string&)>& say);

 private:
  struct Running {
    pid_t pid = 0;  // 0: it has ended, and waits for `again`
    ModelFolders::Versions versions;
    std::string log, policy;
    FileStamp policy_stamp;
    bool asked_wrongly = false;
    std::streamoff read = 0;
    std::chrono::steady_clock::time_point again;
  };
  static void pass_on(const std::string& model, Running& running, const std::function<void(const std::string&)>& say);
  std::string logs_;
  std::map<std::string, Running> running_;
};

}  // namespace serin::cli
