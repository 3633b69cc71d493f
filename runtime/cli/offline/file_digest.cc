#include "runtime/cli/offline/file_digest.h"

#include <fmt/format.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/registry/sha256.h"

namespace serin::cli {
namespace {

/// Without the name of the algorithm.
std::string hex_of(std::string_view digest) { return std::string(digest.substr(digest.find(':') + 1)); }

Result<std::string> digest_of_file(const std::string& path) {
  SERIN_TRY(const registry::Measured file, registry::measure_file(path));
  return hex_of(file.digest);
}

std::string common_folder(const std::vector<std::string>& files) {
  std::filesystem::path common = std::filesystem::path(files.front()).parent_path();
  for (const std::string& file : files)
    while (!common.empty() && std::filesystem::path(file).lexically_relative(common).string().starts_with(".."))
      common = common.parent_path();
  return common.string();
}

std::string name_in(const std::string& file, const std::string& folder) {
  return folder.empty() ? file : std::filesystem::path(file).lexically_relative(folder).string();
}

}  // namespace

Result<std::string> stamp_of(const std::vector<std::string>& files) {
  std::string text;
  const std::string folder = common_folder(files);
  for (const std::string& file : files) {
    const FileStamp stamp = FileStamp::of(file);  // of devices and inodes, pods that share a volume see their own
    text += fmt::format("{}\n{} {}\n", name_in(file, folder), stamp.size, stamp.modified_ns);
  }
  return hex_of(registry::digest_of(text));
}

Result<std::string> digest_of(const std::vector<std::string>& files) {
  if (files.size() == 1) return digest_of_file(files.front());
  std::string text;
  const std::string folder = common_folder(files);
  for (const std::string& file : files) {
    SERIN_TRY(const std::string digest, digest_of_file(file));
    text += fmt::format("{}  {}\n", digest, name_in(file, folder));
  }
  return hex_of(registry::digest_of(text));
}

}  // namespace serin::cli
