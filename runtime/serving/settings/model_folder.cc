#include "runtime/serving/settings/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "runtime/base/number.h"

namespace serin::serving {
namespace {

namespace fs = std::filesystem;

/// A link whose end cannot be looked at may be one to a folder: listing it says.
bool may_be_folder(const fs::directory_entry& entry) {
  std::error_code error, ignored;
  const bool folder = entry.is_directory(error);
  return error ? entry.is_symlink(ignored) && !says_not_there(error.value()) : folder;
}

}  // namespace

bool says_not_there(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

Error file_error(std::string_view what, int error) {
  const Code code = says_not_there(error) ? Code::kNotFound : error == EACCES || error == EPERM ? Code::kPermissionDenied : Code::kIo;
  return {code, fmt::format("{}: {}", what, std::system_category().message(error))};
}

std::optional<uint64_t> parse_version(std::string_view name) {
  if (name.size() > 1 && name.front() == '0') return std::nullopt;
  return parse_number<uint64_t>(name);
}

std::optional<uint64_t> version_of_folder(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!std::ranges::all_of(name, is_digit)) return std::nullopt;
  return parse_number<uint64_t>(name);
}

Result<Listing> list_folder(const std::string& folder) {
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    (may_be_folder(*entry) ? listing.folders : listing.files).push_back(entry->path().filename().string());
  if (error) return file_error("cannot be listed", error.value());
  std::ranges::sort(listing.folders);
  std::ranges::sort(listing.files);
  return listing;
}

}  // namespace serin::serving
