// npy.cc: reads .npy files: magic, version, length of the header, the header (a Python dictionary with three known keys), the elements.
//
//   \x93NUMPY 1 0 <u16 length> {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n <24 bytes>
//
// The dictionary is searched for its keys rather than parsed: NumPy writes it in this form and no other.

#include "runtime/samples/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "runtime/base/file.h"

namespace serin::samples {
namespace {

constexpr size_t kFileBytes = size_t{8} << 30;

Error corrupt(std::string_view what) { return Error{Code::kCorrupt, fmt::format("not a .npy file: {}", what)}; }

struct Descr {
  std::string_view text;
  DType dtype;
};
constexpr Descr kDescrs[] = {
    {"|b1", DType::kBool},   {"|i1", DType::kInt8},    {"<i2", DType::kInt16},   {"<i4", DType::kInt32},
    {"<i8", DType::kInt64},  {"|u1", DType::kUInt8},   {"<u2", DType::kUInt16},  {"<u4", DType::kUInt32},
    {"<u8", DType::kUInt64}, {"<f2", DType::kFloat16}, {"<f4", DType::kFloat32}, {"<f8", DType::kFloat64},
};

/// What follows "'key':" in the dictionary, blanks skipped.
std::optional<std::string_view> after_key(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return std::nullopt;
  const size_t value = header.find_first_not_of(' ', at + key.size() + 3);
  return value == std::string_view::npos ? std::nullopt : std::optional(header.substr(value));
}

Result<DType> dtype_from(std::string_view header) {
  const auto value = after_key(header, "descr");
  if (!value || !value->starts_with("'")) return Error{Code::kUnsupported, ".npy: elements that are not plain numbers"};
  const std::string_view text = value->substr(1, value->find('\'', 1) - 1);
  for (const Descr& descr : kDescrs)
    if (text == descr.text) return descr.dtype;
  return Error{Code::kUnsupported, fmt::format(".npy: elements of type '{}'", text.substr(0, 20))};
}

Result<Shape> shape_from(std::string_view header) {
  auto value = after_key(header, "shape");
  if (!value || !value->starts_with("(")) return corrupt("no shape");
  std::string_view rest = value->substr(1, value->find(')') - 1);
  Shape shape;
  while (true) {
    const size_t digit = rest.find_first_not_of(" ,");
    if (digit == std::string_view::npos) break;
    rest.remove_prefix(digit);
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), dim);
    if (error != std::errc{} || dim < 0) return corrupt("a dimension that is no number");
    if (!Shape::fits(shape.rank() + 1)) return Error{Code::kUnsupported, fmt::format(".npy: more than {} dimensions", Shape::kMaxRank)};
    shape.push_back(dim);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  }
  return shape;
}

}  // namespace

Result<NpyHeader> read_npy_header(std::string_view bytes) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) return corrupt("the first bytes are not those of the format");
  const auto version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3) return Error{Code::kUnsupported, fmt::format(".npy: format version {}", version)};
  const size_t length_bytes = version == 1 ? 2 : 4;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, length_bytes);
  bytes.remove_prefix(8 + length_bytes);
  if (length > bytes.size()) return corrupt("it ends within its header");
  const std::string_view header = bytes.substr(0, length);

  NpyHeader found{.bytes = 8 + length_bytes + length};
  SERIN_TRY(found.dtype, dtype_from(header));
  SERIN_TRY(found.shape, shape_from(header));
  const auto order = after_key(header, "fortran_order");
  if (!order || !order->starts_with("False")) return Error{Code::kUnsupported, ".npy: Fortran order; save numpy.ascontiguousarray(x)"};
  return found;
}

Result<graph::ConstantPtr> read_npy(std::string_view bytes) {
  SERIN_TRY(const NpyHeader header, read_npy_header(bytes));
  const std::string_view elements = bytes.substr(header.bytes);
  const auto count = header.shape.checked_elements();
  size_t needed = 0;
  if (!count || __builtin_mul_overflow(static_cast<size_t>(*count), dtype_size(header.dtype), &needed) || needed != elements.size())
    return corrupt(fmt::format("shape {} of {} does not go with {} bytes", header.shape.str(), dtype_name(header.dtype), elements.size()));
  return graph::make_constant(header.dtype, header.shape, elements.data());
}

Result<graph::ConstantPtr> read_npy_file(const std::string& path) {
  SERIN_TRY(const std::string bytes, read_file(path, kFileBytes));
  auto constant = read_npy(bytes);
  if (!constant) return constant.error().in(path);
  return constant;
}

}  // namespace serin::samples
