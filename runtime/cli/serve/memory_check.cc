// memory_check.cc: a small model in a large memory is not planned twice: its file says enough.

#include "runtime/cli/serve/memory_check.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "runtime/base/log.h"
#include "runtime/planner/admission.h"
#include "runtime/planner/process.h"
#include "runtime/serving/host/host_metrics.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kOrdinary = size_t{1} << 30;  // a server with small models needs less
constexpr size_t kTimesTheFile = 40;           // weights, packed and plain, and arenas of all instances

/// A file and the files next to it, where its weights may be; or all files of a folder. What cannot be read counts nothing.
size_t bytes_of_files(const std::string& path) {
  std::error_code error;
  size_t bytes = 0;
  const auto add_all = [&]<class Files>(Files files) {
    for (; files != Files(); files.increment(error)) {
      std::error_code unreadable;
      if (!files->is_regular_file(unreadable)) continue;
      const auto size = files->file_size(unreadable);
      if (!unreadable) bytes += size;
    }
  };
  constexpr auto kSkip = fs::directory_options::skip_permission_denied;
  if (fs::is_directory(path, error))
    add_all(fs::recursive_directory_iterator(path, kSkip, error));
  else  // a path without a folder is one of the working folder
    add_all(fs::directory_iterator(fs::absolute(path, error).parent_path(), kSkip, error));
  return bytes;
}

}  // namespace

std::function<Status(const std::string&, const std::string&, const serving::ModelSettings&)> memory_check(const std::string& how,
                                                                                                          planner::Machine machine) {
  if (how == "off") return {};
  return [refuses = how == "refuse", machine = std::move(machine)](const std::string& name, const std::string& path,
                                                                   const serving::ModelSettings& settings) -> Status {
    if (settings.device.kind != engine::DeviceChoice::Kind::kCpu) return {};
    const size_t limit = serving::granted_memory() + serving::swap_memory();  // a limit of a control group is one of memory alone
    const planner::Resident now = planner::resident();
    if (limit == 0 || now.own + now.files + kOrdinary + kTimesTheFile * bytes_of_files(path) < limit) return {};
    const planner::Admission admission =
        planner::admit(machine, {.name = name, .version = "", .path = path, .folder = {}, .settings = settings}, limit, now);
    if (admission.sentence.empty()) return {};
    if (admission.cannot_fit && refuses) return Error{Code::kTooLarge, admission.sentence + "; --memory-check warn loads it all the same"};
    log::warning("{}: memory: {}: {}", name, admission.cannot_fit ? "it cannot fit" : "it may not fit", admission.sentence);
    return {};
  };
}

}  // namespace serin::cli
