#include "runtime/datasets/npz_inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "runtime/base/file.h"

namespace serin::datasets {
namespace {

constexpr size_t kStep = size_t{1} << 18;
constexpr uint64_t kMostRatio = 1032;  // of DEFLATE: 258 bytes for two bits

class RawInflater {
 public:
  RawInflater() : ready_(inflateInit2(&stream_, -MAX_WBITS) == Z_OK) {}  // a zip archive has no header around the data
  RawInflater(const RawInflater&) = delete;
  RawInflater& operator=(const RawInflater&) = delete;
  ~RawInflater() { inflateEnd(&stream_); }

  bool ready() const { return ready_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  const bool ready_;
};

Status inflate_to(int descriptor, const StoredFile& archive, const Deflated& member) {
  const auto corrupt = [](std::string_view why) { return Error{Code::kCorrupt, std::string(why)}; };
  if (member.size / kMostRatio > member.compressed) return corrupt("its size is more than its data can hold");
  RawInflater inflater;
  if (!inflater.ready()) return Error{Code::kIo, "no memory to decompress it"};
  z_stream& stream = inflater.stream();
  std::string out(kStep, '\0');
  uint64_t made = 0, taken = 0;
  uLong crc = crc32(0, nullptr, 0);
  int said = Z_OK;
  while (said != Z_STREAM_END) {
    const auto part = static_cast<size_t>(std::min<uint64_t>(kStep, member.compressed - taken));
    if (part == 0) return corrupt("its compressed data are cut off");
    SERIN_TRY(std::string in, archive.read(member.begin + taken, part));
    taken += part;
    stream.next_in = reinterpret_cast<Bytef*>(in.data());
    stream.avail_in = static_cast<uInt>(in.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(out.data());
      stream.avail_out = static_cast<uInt>(out.size());
      said = inflate(&stream, Z_NO_FLUSH);
      if (said != Z_OK && said != Z_STREAM_END && said != Z_BUF_ERROR) return corrupt("its compressed data are damaged");
      const size_t got = out.size() - stream.avail_out;
      made += got;
      if (made > member.size) return corrupt("it is larger than the archive says");
      crc = crc32(crc, reinterpret_cast<const Bytef*>(out.data()), static_cast<uInt>(got));
      if (!write_all(descriptor, std::string_view(out).substr(0, got)))
        return Error{Code::kIo, fmt::format("it is decompressed in the folder for temporary files: {}", std::strerror(errno))};
    } while (stream.avail_out == 0 && said != Z_STREAM_END);
  }
  if (made != member.size) return corrupt("it is smaller than the archive says");
  if (crc != member.crc) return corrupt("its checksum is wrong");
  return {};
}

}  // namespace

Result<std::unique_ptr<const StoredFile>> inflate_member(const StoredFile& archive, const Deflated& member) {
  const std::string path = fmt::format("{}: member '{}'", archive.path(), member.name);
  return StoredFile::without_name(path, [&](int descriptor) -> Status {
    if (const Status done = inflate_to(descriptor, archive, member); !done) return done.error().in(path);
    return {};
  });
}

}  // namespace serin::datasets
