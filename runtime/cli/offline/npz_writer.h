// npz_writer.h: writes an archive that numpy.load reads, array by array, of any size.
//
//   SERIN_TRY(auto out, NpzWriter::create("scores.npz"));
//   SERIN_CHECK(out.begin("scores", DType::kFloat32, {540, 10}));
//   SERIN_CHECK(out.write(bytes));                                 // in parts, until the array is full
//   SERIN_CHECK(out.finish());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/result.h"
#include "runtime/cli/offline/output_stream.h"

namespace serin::cli {

/// NumPy's name of an element type ("<f4"); nothing: NumPy has none.
std::optional<std::string_view> npz_descr(DType dtype);

/// Not thread-safe. The same arrays give the same bytes: no time is stored.
class NpzWriter {
 public:
  static Result<NpzWriter> create(const std::string& path);
  Status begin(const std::string& name, DType dtype, const Shape& shape);
  Status write(std::string_view bytes);
  Status finish();

 private:
  struct Member {
    std::string name;
    uint64_t offset = 0, bytes = 0;
    uint32_t crc = 0;
  };
  explicit NpzWriter(OutputStream out) : out_(std::move(out)) {}
  Status end_member();

  OutputStream out_;
  std::vector<Member> members_;
};

}  // namespace serin::cli
