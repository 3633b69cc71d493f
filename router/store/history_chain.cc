// history_chain.cc: computes the digests of entries. Each field is hashed with its length before it, so that no two entries have the same
// text.

#include "router/store/history_chain.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>

namespace serin::store {
namespace {

std::string digest_of(const HistoryEntry& entry) {
  std::string text;
  for (const std::string_view field : {std::string_view(entry.previous), std::string_view(entry.service), std::string_view(entry.rollout),
                                       std::string_view(entry.event), std::string_view(entry.actor), std::string_view(entry.detail)})
    text += fmt::format("{}:{},", field.size(), field);
  return sha256(text + fmt::format("{},{}", entry.wall_ms, entry.weight_ppm));
}

}  // namespace

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) return {};
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

void chain(std::span<HistoryEntry> entries, std::string last) {
  for (HistoryEntry& entry : entries) {
    entry.previous = std::move(last);
    entry.digest = last = digest_of(entry);
  }
}

std::optional<ChainBreak> find_break(std::span<const HistoryEntry> entries) {
  const auto first = std::ranges::find_if(entries, [](const HistoryEntry& entry) { return !entry.digest.empty(); });
  for (auto entry = first; entry != entries.end(); ++entry) {
    const auto broken = [&](std::string_view why) {
      return ChainBreak{static_cast<size_t>(entry - entries.begin()), fmt::format("entry {}: {}", entry->id, why)};
    };
    if (entry->digest != digest_of(*entry)) return broken("was changed after it was written");
    if (entry != first && entry->previous != std::prev(entry)->digest)
      return broken("does not follow the entry before it: some are missing");
  }
  return std::nullopt;
}

}  // namespace serin::store
