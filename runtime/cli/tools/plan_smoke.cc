#include "runtime/cli/tools/plan_smoke.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "runtime/base/file.h"
#include "runtime/base/temporary_folder.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/release/child.h"
#include "runtime/planner/template_plan.h"
#include "runtime/samples/data_sets.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;

Status link(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directory_symlink(from, to, error);
  if (error) return Error{Code::kIo, fmt::format("{}: {}", to.string(), error.message())};
  return {};
}

/// As the pod has it: links to the version and to what settings may name, and the settings.
Status lay_out(const std::string& settings, const planner::ModelFolder& files, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Error{Code::kIo, fmt::format("{}: {}", folder.string(), error.message())};
  const fs::path root = files.root;
  SERIN_CHECK(link(root / files.version_folder, folder / files.version));
  for (const std::string& name : files.beside) SERIN_CHECK(link(root / name, folder / name));
  return settings.empty() ? Status() : write_file_atomically((folder / "serin.yaml").string(), settings);
}

/// The text of serin.yaml: that of the question, else the model's own. Empty: there is none.
Result<std::string> settings_of(const SmokeQuestion& question) {
  constexpr size_t kLargest = 1 << 20;
  if (!question.settings.empty() || question.model.folder.empty()) return question.settings;
  auto own = read_file((fs::path(question.model.folder) / "serin.yaml").string(), kLargest);
  if (!own && own.error().code == Code::kNotFound) return std::string();
  return own;
}

/// Empty: there is none.
std::string data_of(const SmokeQuestion& question, const planner::ModelFolder& files) {
  if (!question.data.empty()) return question.data;
  for (const fs::path& folder : {fs::path(files.root) / files.version_folder, fs::path(files.root)})
    if (samples::find_data_sets(folder.string())) return folder.string();
  return {};
}

/// The reason that `serve --check` printed.
std::string why_not_served(const ChildEnd& end) {
  constexpr std::string_view kFailed = "FAILED: ";
  const size_t at = end.out.find(kFailed);
  if (at == std::string::npos) return end.why();
  const size_t from = at + kFailed.size();
  return end.out.substr(from, end.out.find('\n', from) - from);
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

Error failed(const std::string& what) { return {Code::kFailedPrecondition, "smoke run: " + what}; }

}  // namespace

Result<std::string> run_smoke(const SmokeQuestion& question) {
  block_end_signals();
  SERIN_TRY(const TemporaryFolder work, TemporaryFolder::make("serin-smoke"));
  SERIN_TRY(const std::string settings, settings_of(question));
  const planner::ModelFolder files = planner::folder_of(question.model, settings);
  const fs::path folder = fs::path(work.path()) / "models" / files.name;
  SERIN_CHECK(lay_out(settings, files, folder));
  std::vector<std::string> serve = {"serve", "--name", files.name, folder.string(), "--check", "--log-level", "warning"};
  serve.insert(serve.end(), question.flags.begin(), question.flags.end());
  SERIN_TRY(const ChildEnd served, run_serin(serve, work.path()));
  if (served.exit_code != 0 || served.signal != 0) return failed(fmt::format("the model is not served: {}", why_not_served(served)));
  const std::string data = data_of(question, files);
  if (data.empty()) return "smoke run: loaded and warmed up; there are no data sets to check it on";
  std::vector<std::string> check = {"check", question.model.path, data, "--threads", std::to_string(question.threads)};
  const auto add = [&](const char* flag, const std::string& value) { check.insert(check.end(), {flag, value}); };
  if (!question.precision.empty()) add("--precision", question.precision);
  if (question.rtol) add("--rtol", fmt::format("{}", *question.rtol));
  if (question.atol) add("--atol", fmt::format("{}", *question.atol));
  SERIN_TRY(const ChildEnd checked, run_serin(check, work.path()));
  if (checked.exit_code != 0 || checked.signal != 0) {
    const std::string why = checked.exit_code == 1 ? last_line(checked.out) : checked.why();
    return failed(fmt::format("the model loads, and its answers on {} are wrong: {}", data, why));
  }
  return fmt::format("smoke run: loaded and warmed up; {}", last_line(checked.out));
}

}  // namespace serin::cli
