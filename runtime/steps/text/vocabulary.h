// vocabulary.h: tokens and their ids. The table is fixed once a file is read, so a client's text cannot make its searches slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace serin::steps::text {

/// Ids and the counts of tokens fit into this.
constexpr int64_t kMostTokens = 1 << 24;

class Vocabulary {
 public:
  struct Token {
    uint64_t hash = 0;
    uint32_t begin = 0, bytes = 0;  ///< of its text
    int32_t id = -1;
  };

  void reserve(size_t tokens, size_t bytes);
  /// A token that is there gets the new id.
  void set(std::string_view token, int32_t id);

  /// -1: there is no such token.
  int32_t find(std::string_view token) const {
    if (slots_.empty()) return -1;
    const uint64_t wanted = hash(token);
    for (size_t slot = wanted & mask_;; slot = (slot + 1) & mask_) {
      const uint32_t at = slots_[slot];
      if (at == 0) return -1;
      const Token& found = tokens_[at - 1];
      if (found.hash == wanted && text(found) == token) return found.id;
    }
  }

  size_t size() const { return tokens_.size(); }
  const std::vector<Token>& tokens() const { return tokens_; }
  std::string_view text(const Token& token) const { return std::string_view(bytes_).substr(token.begin, token.bytes); }

 private:
  static uint64_t hash(std::string_view token);
  void grow(size_t slots);

  std::string bytes_;
  std::vector<Token> tokens_;
  std::vector<uint32_t> slots_;  // a token's place + 1; 0: free
  size_t mask_ = 0;
};

}  // namespace serin::steps::text
