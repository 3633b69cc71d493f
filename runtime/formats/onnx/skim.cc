// skim.cc: reads large weights straight into memory of their own: ModelProto.graph (7) -> GraphProto.initializer (5) ->
// TensorProto.raw_data (9), and everything between them.
//
// Nearly all of a model file is weights, which end in memory of their own. Read once, straight to there, they cost half of what they do when the
// whole file is read first. So this walks the few messages around them in the file's order, reading a piece ahead, and steps over them. It judges
// nothing: at the first thing that it does not understand it reads the rest.

#include "runtime/formats/onnx/skim.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace serin::formats::onnx {
namespace {

constexpr size_t kWorthSkipping = size_t{64} << 10;
constexpr size_t kPiece = size_t{16} << 10;
constexpr size_t kLongestHeader = 20;  // two varints
constexpr uint32_t kPath[] = {7, 5, 9};

class Skimmer {
 public:
  Skimmer(const InputFile& file, std::span<std::byte> image) : file_(file), image_(image) {}

  Result<std::vector<Hole>> run() {
    SERIN_CHECK(walk(0, image_.size(), 0));
    SERIN_CHECK(read_to(image_.size()));
    return std::move(holes_);
  }

 private:
  /// What is before `end` and in no hole is there afterwards.
  Status read_to(size_t end) {
    if (end <= done_) return {};
    const size_t size = std::min(std::max(end - done_, kPiece), image_.size() - done_);
    SERIN_CHECK(file_.read(done_, image_.subspan(done_, size)));
    done_ += size;
    return {};
  }

  std::optional<uint64_t> varint(size_t& at, size_t end) const {
    uint64_t value = 0;
    for (int shift = 0; at < end && shift < 64; shift += 7) {
      const auto byte = static_cast<uint64_t>(image_[at++]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  /// The fields of one message, `depth` steps down the path. Returns early where they make no sense.
  Status walk(size_t at, size_t end, size_t depth) {
    while (at < end) {
      SERIN_CHECK(read_to(std::min(at + kLongestHeader, end)));
      const std::optional<uint64_t> tag = varint(at, end);
      if (!tag) return {};
      const auto wire = static_cast<uint32_t>(*tag & 7);
      if (wire == 0 && !varint(at, end)) return {};
      if (wire == 1) at += 8;
      if (wire == 5) at += 4;
      if (wire == 0 || wire == 1 || wire == 5) continue;
      const std::optional<uint64_t> length = wire == 2 ? varint(at, end) : std::nullopt;
      if (!length || *length > end - at) return {};
      const size_t next = at + static_cast<size_t>(*length);
      if (*tag >> 3 == kPath[depth]) {
        if (depth + 1 < std::size(kPath))
          SERIN_CHECK(walk(at, next, depth + 1));
        else if (*length >= kWorthSkipping)
          SERIN_CHECK(step_over(at, next));
      }
      at = next;
      SERIN_CHECK(read_to(at));
    }
    return {};
  }

  Status step_over(size_t begin, size_t end) {
    SERIN_CHECK(read_to(begin));
    holes_.push_back({begin, end});
    done_ = std::max(done_, end);
    return {};
  }

  const InputFile& file_;
  const std::span<std::byte> image_;
  size_t done_ = 0;
  std::vector<Hole> holes_;
};

}  // namespace

Result<std::vector<Hole>> skim(const InputFile& file, std::span<std::byte> image) { return Skimmer(file, image).run(); }

}  // namespace serin::formats::onnx
