// content_coding.cc: compresses and decompresses bodies. One loop decompresses, in which zlib and zstd differ by a step. Sources: RFC 9110,
// 8.4 and 12.5.3; RFC 8878; RFC 9659.

#include "runtime/net/content_coding.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "runtime/net/http.h"
#include "runtime/net/message/text.h"

namespace serin::net {
namespace {

constexpr size_t kLargestStep = size_t{1} << 20;
constexpr int kFastest = 1;         // level of both libraries
constexpr int kZstdWindowLog = 23;  // 8 MiB: what RFC 9659 has every reader of a body keep

constexpr struct {
  std::string_view name;
  Coding coding;
} kNames[] = {
    {"zstd", Coding::kZstd}, {"gzip", Coding::kGzip}, {"x-gzip", Coding::kGzip}, {"deflate", Coding::kDeflate}};  // the cheapest first

struct Step {
  enum class End : uint8_t { kMore, kDone, kBad } end;
  size_t taken, made;
  std::string_view why = "unknown";
};

/// "deflate" is the zlib format (RFC 9110, 8.4.1.2), gzip the other.
int window_bits(Coding coding) { return coding == Coding::kGzip ? MAX_WBITS + 16 : MAX_WBITS; }

class Inflater {
 public:
  explicit Inflater(Coding coding) : ready_(inflateInit2(&stream_, window_bits(coding)) == Z_OK) {}
  Inflater(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  bool restart() { return ready_ && inflateReset(&stream_) == Z_OK; }
  Step step(std::string_view in, char* out, size_t room) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(room);
    const int said = inflate(&stream_, Z_NO_FLUSH);
    Step step{Step::End::kMore, in.size() - stream_.avail_in, room - stream_.avail_out};
    if (said == Z_STREAM_END) step.end = Step::End::kDone;
    if (said != Z_STREAM_END && said != Z_OK && said != Z_BUF_ERROR) step.end = Step::End::kBad;
    if (stream_.msg) step.why = stream_.msg;
    return step;
  }

 private:
  z_stream stream_{};
  bool ready_;
};

class ZstdReader {
 public:
  bool restart() {
    return stream_ && !ZSTD_isError(ZSTD_initDStream(stream_.get())) &&
           !ZSTD_isError(ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kZstdWindowLog));
  }
  Step step(std::string_view in, char* out, size_t room) {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out, room, 0};
    const size_t left = ZSTD_decompressStream(stream_.get(), &to, &from);
    Step step{left == 0 ? Step::End::kDone : Step::End::kMore, from.pos, to.pos};
    if (ZSTD_isError(left)) step = {Step::End::kBad, from.pos, to.pos, ZSTD_getErrorName(left)};
    return step;
  }

 private:
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> stream_{ZSTD_createDCtx(), ZSTD_freeDCtx};
};

/// `several`: members of gzip (RFC 1952, 2.2) and frames of zstd (RFC 8878, 3.1) may follow each other.
template <class Reader>
Result<std::string> unpack_with(Reader& reader, std::string_view bytes, size_t limit, bool several, const UnpackMemory& memory) {
  const auto no_memory = [] { return Error{Code::kInternal, "there is not enough memory to decompress"}; };
  if (!reader.restart()) return no_memory();
  const auto corrupt = [](std::string_view why) { return Error{Code::kCorrupt, fmt::format("the compressed bytes are damaged: {}", why)}; };
  const size_t packed = bytes.size();
  std::string out;
  for (size_t filled = 0;;) {
    if (filled == out.size()) {
      const size_t size = std::min(limit + 1, filled + std::clamp(filled, packed + 64, packed + kLargestStep));
      if (!memory.share.resize(memory.budget, memory.beside + std::min(size, limit)))
        return Error{Code::kOverloaded, "there is not enough memory for the decompressed bytes"};
      out.resize(size);
    }
    const Step step = reader.step(bytes, out.data() + filled, out.size() - filled);
    filled += step.made;
    bytes.remove_prefix(step.taken);
    if (filled > limit) return Error{Code::kTooLarge, fmt::format("more than {} bytes once they are decompressed", limit)};
    if (step.end == Step::End::kBad) return corrupt(step.why);
    if (step.end == Step::End::kMore && bytes.empty() && filled < out.size()) return corrupt("they are cut short");
    if (step.end == Step::End::kMore) continue;
    if (!bytes.empty() && !several) return corrupt("more bytes follow their end");
    if (!bytes.empty() && !reader.restart()) return no_memory();
    if (!bytes.empty()) continue;
    out.resize(filled);
    return out;
  }
}

class Deflater {
 public:
  explicit Deflater(Coding coding)
      : ready_(deflateInit2(&stream_, kFastest, Z_DEFLATED, window_bits(coding), 8, Z_DEFAULT_STRATEGY) == Z_OK) {}
  Deflater(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream_); }

  /// Bytes written; 0: they do not fit.
  size_t pack(std::string_view in, std::string& out) {
    if (!ready_ || deflateReset(&stream_) != Z_OK) return 0;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    return deflate(&stream_, Z_FINISH) == Z_STREAM_END ? out.size() - stream_.avail_out : 0;
  }

 private:
  z_stream stream_{};
  bool ready_;
};

size_t pack_zstd(std::string_view in, std::string& out) {
  thread_local const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context{ZSTD_createCCtx(), ZSTD_freeCCtx};
  if (!context) return 0;
  const size_t size = ZSTD_compressCCtx(context.get(), out.data(), out.size(), in.data(), in.size(), kFastest);
  return ZSTD_isError(size) ? 0 : size;
}

/// "q=0.5" behind a coding: thousandths; 1000 where there is none, 0 where it is malformed.
int quality(std::string_view parameters) {
  parameters = text::trim(parameters);
  if (parameters.empty()) return 1000;
  if (!parameters.starts_with("q=") && !parameters.starts_with("Q=")) return 0;
  parameters.remove_prefix(2);
  double value = 0;
  const auto [end, failure] = std::from_chars(parameters.data(), parameters.data() + parameters.size(), value);
  const bool whole = failure == std::errc() && end == parameters.data() + parameters.size();
  return whole && value >= 0 && value <= 1 ? static_cast<int>(value * 1000) : 0;
}

}  // namespace

std::optional<Coding> parse_coding(std::string_view name) {
  for (const auto& known : kNames)
    if (equal_ignoring_case(known.name, name)) return known.coding;
  return std::nullopt;
}

std::string_view coding_name(Coding coding) {
  return std::ranges::find(kNames, coding, [](const auto& known) { return known.coding; })->name;
}

std::optional<Coding> preferred_coding(std::string_view accept_encoding) {
  std::optional<Coding> best;
  int best_quality = 0;
  while (!accept_encoding.empty()) {
    const std::string_view item = accept_encoding.substr(0, accept_encoding.find(','));
    accept_encoding.remove_prefix(std::min(item.size() + 1, accept_encoding.size()));
    const size_t semicolon = std::min(item.find(';'), item.size());
    const auto coding = parse_coding(text::trim(item.substr(0, semicolon)));
    if (!coding) continue;
    const int liked = quality(item.substr(std::min(semicolon + 1, item.size())));
    if (liked < best_quality || liked == 0 || (liked == best_quality && *coding != Coding::kZstd))
      continue;  // the first of those liked alike, but for zstd
    best = coding;
    best_quality = liked;
  }
  return best;
}

Result<std::string> unpack(Coding coding, std::string_view bytes, size_t limit) {
  MemoryBudget::Share none;
  return unpack(coding, bytes, limit, {.share = none, .budget = nullptr});
}

Result<std::string> unpack(Coding coding, std::string_view bytes, size_t limit, const UnpackMemory& memory) {
  thread_local Inflater gzip(Coding::kGzip), deflate(Coding::kDeflate);
  thread_local ZstdReader zstd;
  if (coding == Coding::kZstd) return unpack_with(zstd, bytes, limit, true, memory);
  return unpack_with(coding == Coding::kGzip ? gzip : deflate, bytes, limit, coding == Coding::kGzip, memory);
}

std::optional<std::string> pack(Coding coding, std::string_view bytes) {
  thread_local Deflater gzip(Coding::kGzip), deflate(Coding::kDeflate);
  std::string out(bytes.size(), '\0');
  const size_t size = coding == Coding::kZstd ? pack_zstd(bytes, out) : (coding == Coding::kGzip ? gzip : deflate).pack(bytes, out);
  if (size == 0 || size >= bytes.size()) return std::nullopt;
  out.resize(size);
  return out;
}

}  // namespace serin::net
