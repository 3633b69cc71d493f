#include "runtime/datasets/text_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace serin::datasets {
namespace {

constexpr size_t kScanBytes = size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
/// A longer row is no row of a table; it would be held in memory once for each thread.
constexpr uint64_t kMostRowBytes = uint64_t{256} << 20;

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

Result<TextRows> TextRows::index(const std::string& path, std::optional<char> separator) {
  TextRows rows;
  SERIN_TRY(rows.file_, StoredFile::open(path));
  const StoredFile& file = *rows.file_;
  std::string chunk(kScanBytes, '\0');
  Row row{0, 1};
  uint64_t line = 1, quoted_since = 0;
  bool filled = false;  // the row has more than blanks
  // Where in a field the scan is; a quotation mark in the middle of a plain field opens nothing.
  enum class At : uint8_t { kStart, kPlain, kQuoted, kAfterQuote } at_field = At::kStart;
  const auto end_row = [&](uint64_t end) -> Status {
    if (filled && end - row.offset > kMostRowBytes)
      return Error{Code::kTooLarge, fmt::format("{}: line {}: a row of more than {} MiB", path, row.line, kMostRowBytes >> 20)};
    if (filled) rows.rows_.push_back(row);
    return {};
  };
  for (uint64_t at = 0; at < file.size(); at += kScanBytes) {
    const size_t bytes = std::min<uint64_t>(kScanBytes, file.size() - at);
    SERIN_CHECK(file.read(at, bytes, chunk.data()));
    size_t from = 0;
    if (at == 0 && std::string_view(chunk.data(), bytes).starts_with(kByteOrderMark)) row.offset = from = kByteOrderMark.size();
    for (size_t i = from; i < bytes; ++i) {
      const char c = chunk[i];
      if (c == '\n') {
        ++line;
        if (at_field == At::kQuoted) continue;
        SERIN_CHECK(end_row(at + i));
        row = {at + i + 1, line};
        filled = false;
        at_field = At::kStart;
        continue;
      }
      filled = filled || !blank(c);
      if (!separator) continue;
      if (at_field == At::kQuoted) {
        if (c == '"') at_field = At::kAfterQuote;
      } else if (c == '"' && at_field != At::kPlain) {
        if (at_field == At::kStart) quoted_since = line;
        at_field = At::kQuoted;
      } else {
        at_field = c == *separator ? At::kStart : At::kPlain;
      }
    }
  }
  if (at_field == At::kQuoted) return Error{Code::kCorrupt, fmt::format("{}: line {}: a quotation mark is not closed", path, quoted_since)};
  SERIN_CHECK(end_row(file.size()));
  return rows;
}

Result<TextRows::Block> TextRows::read(int64_t first, int64_t count) const {
  Block block;
  if (count == 0) return block;
  const auto begin = static_cast<size_t>(first), end = begin + static_cast<size_t>(count);
  const uint64_t offset = rows_[begin].offset;
  const uint64_t bytes = (end < rows_.size() ? rows_[end].offset : file_->size()) - offset;
  block.buffer.resize(bytes + kPadding);
  SERIN_CHECK(file_->read(offset, bytes, block.buffer.data()));
  for (size_t i = begin; i < end; ++i) {
    const uint64_t from = rows_[i].offset - offset, to = i + 1 < end ? rows_[i + 1].offset - offset : bytes;
    std::string_view text(block.buffer.data() + from, to - from);
    while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
    block.rows.push_back(text);
  }
  return block;
}

}  // namespace serin::datasets
