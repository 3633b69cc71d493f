#include "runtime/cli/offline/file_digest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <array>
#include <filesystem>
#include <memory>

#include "runtime/base/file.h"
#include "runtime/datasets/stored_file.h"

namespace serin::cli {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string hex() {
    std::array<unsigned char, 32> digest{};
    EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
    return fmt::format("{:02x}", fmt::join(digest, ""));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

Result<std::string> digest_of_file(const std::string& path) {
  constexpr size_t kPart = size_t{1} << 20;
  SERIN_TRY(const auto file, datasets::StoredFile::open(path));
  Sha256 sha;
  for (uint64_t at = 0; at < file->size(); at += kPart) {
    SERIN_TRY(const std::string part, file->read(at, static_cast<size_t>(std::min<uint64_t>(kPart, file->size() - at))));
    sha.add(part);
  }
  return sha.hex();
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
  Sha256 sha;
  const std::string folder = common_folder(files);
  for (const std::string& file : files) {
    const FileStamp stamp = FileStamp::of(file);  // of devices and inodes, pods that share a volume see their own
    sha.add(fmt::format("{}\n{} {}\n", name_in(file, folder), stamp.size, stamp.modified_ns));
  }
  return sha.hex();
}

Result<std::string> digest_of(const std::vector<std::string>& files) {
  if (files.size() == 1) return digest_of_file(files.front());
  Sha256 sha;
  const std::string folder = common_folder(files);
  for (const std::string& file : files) {
    SERIN_TRY(const std::string digest, digest_of_file(file));
    sha.add(fmt::format("{}  {}\n", digest, name_in(file, folder)));
  }
  return sha.hex();
}

}  // namespace serin::cli
