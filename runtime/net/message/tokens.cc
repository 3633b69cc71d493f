// tokens.cc: reads the file of tokens into entries, refuses invalid ones with their line, and compares tokens in constant time.

#include "runtime/net/tokens.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>

#include <algorithm>

#include "runtime/base/config.h"
#include "runtime/base/log.h"
#include "runtime/net/message/text.h"

namespace serin::net {
namespace {

using config::Node;
using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

constexpr size_t kShortestToken = 16, kLongestToken = 512, kLongestName = 64, kMostTokens = 1000;
constexpr std::string_view kScheme = "bearer ";

Digest sha256(std::string_view text) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

Result<Digest> read_digest(const Node& node) {
  SERIN_TRY(const std::string text, node.text());
  const auto value = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  Digest digest;
  if (text.size() != 2 * digest.size() || !std::ranges::all_of(text, [&](char c) { return value(c) >= 0; }))
    return node.error("must be the 64 lower-case hexadecimal digits that sha256sum prints");
  for (size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<unsigned char>(value(text[2 * i]) << 4 | value(text[2 * i + 1]));
  return digest;
}

/// A token as it is sent: what RFC 6750 lets stand behind "Bearer".
Result<Digest> read_plain(const Node& node) {
  SERIN_TRY(const std::string text, node.text());
  const bool sendable = std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7F; });
  if (text.size() < kShortestToken || text.size() > kLongestToken || !sendable)
    return node.error(fmt::format("must be {} to {} visible ASCII characters, drawn at random", kShortestToken, kLongestToken));
  return sha256(text);
}

Result<std::string> read_certificate_name(const Node& node) {
  SERIN_TRY(std::string name, node.text());
  const size_t colon = name.find(':');
  const std::string_view kind = std::string_view(name).substr(0, colon);
  if ((kind != "URI" && kind != "DNS" && kind != "CN") || colon == std::string::npos || colon + 1 == name.size())
    return node.error("must be a name of a certificate, such as \"URI:spiffe://corp/ci\", \"DNS:ci.corp\" or \"CN:ci\"");
  return name;
}

Result<size_t> read_role(const Node& entry, std::span<const std::string_view> roles) {
  SERIN_TRY(const Node role, entry.at("role"));
  SERIN_TRY(const std::string word, role.text());
  const auto found = std::ranges::find(roles, word);
  if (found == roles.end()) return role.error(fmt::format("must be one of {}, not '{}'", fmt::join(roles, ", "), word));
  return static_cast<size_t>(found - roles.begin());
}

Result<std::string> read_name(const Node& entry) {
  SERIN_TRY(const Node node, entry.at("name"));
  SERIN_TRY(std::string name, node.text());
  if (name.empty() || name.size() > kLongestName || std::ranges::any_of(name, [](char c) { return c <= ' ' || c == 0x7F; }))
    return node.error(fmt::format("must be a name of 1 to {} characters without spaces", kLongestName));
  return name;
}

}  // namespace

std::optional<std::string_view> bearer_token(const Headers& headers) {
  const std::string_view value = headers.get("authorization");
  if (value.size() <= kScheme.size() || !equal_ignoring_case(value.substr(0, kScheme.size()), kScheme)) return std::nullopt;
  return value.substr(kScheme.size());
}

bool equal_secrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Result<std::vector<Tokens::Entry>> Tokens::read() const {
  const std::string& path = options_.path;
  SERIN_TRY(const Node root, Node::load(path));
  SERIN_CHECK(root.allow_only({"tokens"}));
  SERIN_TRY(const Node list, root.at("tokens"));
  const auto items = list.items();
  if (items.empty() || items.size() > kMostTokens)
    return list.error(
        fmt::format("must be a list of 1 to {} entries such as {{name: ci, role: {}, sha256: ...}}", kMostTokens, options_.roles.front()));
  struct stat file{};
  const bool others_may_read = ::stat(path.c_str(), &file) == 0 && (file.st_mode & (S_IRWXG | S_IRWXO)) != 0;
  std::vector<Entry> entries;
  for (const Node& item : items) {
    SERIN_CHECK(item.allow_only({"name", "role", "sha256", "token", "certificate"}));
    Entry entry;
    SERIN_TRY(entry.caller.name, read_name(item));
    SERIN_TRY(entry.caller.role, read_role(item, options_.roles));
    const auto hashed = item.find("sha256"), plain = item.find("token"), certificate = item.find("certificate");
    if (hashed.has_value() + plain.has_value() + certificate.has_value() != 1)
      return item.error("must have one of sha256, token and certificate");
    if (plain && others_may_read)
      return plain->error(
          fmt::format("is plain text, and users other than its owner may read the file (mode {:o}): chmod 600 it, or give sha256 instead",
                      file.st_mode & 0777U));
    if (certificate) {
      SERIN_TRY(entry.certificate, read_certificate_name(*certificate));
    } else {
      SERIN_TRY(entry.digest, hashed ? read_digest(*hashed) : read_plain(*plain));
    }
    for (const Entry& other : entries) {
      if (other.caller.name == entry.caller.name) return item.error(fmt::format("name '{}' given twice", entry.caller.name));
      if (other.digest == entry.digest && other.certificate == entry.certificate)
        return item.error(fmt::format("is the {} of '{}'", certificate ? "certificate" : "token", other.caller.name));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::unique_ptr<Tokens>> Tokens::open(Options options, metrics::Registry& metrics) {
  auto tokens = std::unique_ptr<Tokens>(new Tokens(std::move(options)));
  tokens->stale_ =
      metrics.gauge(tokens->options_.stale_metric, "1 while the file of tokens cannot be used and the tokens read before stay in force.");
  const MutexLock lock(tokens->mutex_);
  tokens->seen_ = FileStamp::of(tokens->options_.path);  // before reading: what changes meanwhile is read again
  SERIN_TRY(tokens->entries_, tokens->read());
  return tokens;
}

void Tokens::read_again_if_changed() {
  if (const auto time = std::chrono::steady_clock::now(); options_.look_every.count() > 0) {
    if (time - looked_ < options_.look_every) return;
    looked_ = time;
  }
  const FileStamp now = FileStamp::of(options_.path);
  if (now == seen_) return;
  seen_ = now;
  auto entries = read();
  stale_->set(entries ? 0 : 1);
  if (!entries) return log::error("tokens: {}; those of before stay in force", entries.error().message);
  entries_ = *std::move(entries);
  log::info("tokens: {} has changed and was read again: {} tokens", options_.path, entries_.size());
}

std::optional<Tokens::Caller> Tokens::find(std::string_view token) {
  const Digest digest = sha256(token);
  const MutexLock lock(mutex_);
  read_again_if_changed();
  std::optional<Caller> found;
  for (const Entry& entry : entries_)
    if (entry.certificate.empty() && CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found = entry.caller;
  return found;
}

std::optional<Tokens::Caller> Tokens::find(const net::PeerCertificate& certificate) {
  const MutexLock lock(mutex_);
  read_again_if_changed();
  for (const std::string& name : certificate.names) {
    const auto known = std::ranges::find(entries_, name, &Entry::certificate);
    if (known != entries_.end()) return known->caller;
  }
  return std::nullopt;
}

}  // namespace serin::net
