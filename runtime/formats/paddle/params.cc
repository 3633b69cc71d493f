// params.cc: reads tensors as Paddle stores them, one after another without names, alignment or checksums (little-endian):
//
//   u32 version = 0 | u64 levels | for each level: u64 bytes, offsets | u32 version = 0 | i32 length | TensorDesc (protobuf) | elements
//
// Files written by other programs of the same name are common: a pickled .pdparams, a pointer of git-lfs. recognise.h tells them.

#include "runtime/formats/paddle/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/formats/input_file.h"
#include "runtime/formats/open_beneath.h"
#include "runtime/formats/paddle/program_desc.h"
#include "runtime/formats/recognise.h"

namespace serin::formats::paddle {
namespace {

constexpr size_t kLongestDesc = 4096;
constexpr size_t kStart = 512;  // bytes from which another format is recognised

class TensorFile {
 public:
  explicit TensorFile(InputFile file) : file_(std::make_shared<const InputFile>(std::move(file))) {}

  bool at_end() const { return at_ == file_->size(); }

  Result<graph::ConstantPtr> next(const Declared& declared) {
    SERIN_TRY(const auto version, read<uint32_t>());
    if (version != 0) return damaged(fmt::format("a tensor of version {}", version));
    SERIN_TRY(const auto levels, read<uint64_t>());
    for (uint64_t level = 0; level < levels; ++level) {
      SERIN_TRY(const auto bytes, read<uint64_t>());
      SERIN_CHECK(skip(bytes));
    }
    SERIN_TRY(const auto tensor_version, read<uint32_t>());
    if (tensor_version != 0) return damaged(fmt::format("elements of version {}", tensor_version));
    SERIN_TRY(const TensorDesc desc, read_desc());
    return read_elements(desc, declared);
  }

  Error damaged(std::string_view what) const {
    std::vector<std::byte> start(std::min(kStart, file_->size()));
    if (file_->read(0, start))
      if (const auto other = recognise(start)) return {Code::kCorrupt, "holds no parameters of Paddle but is " + *other};
    return {Code::kCorrupt, fmt::format("byte {}: {}; damaged, or not the parameters of this program", at_, what)};
  }

 private:
  Status need(uint64_t bytes) const {
    if (bytes > file_->size() - at_) return damaged(fmt::format("{} bytes are needed, {} are left", bytes, file_->size() - at_));
    return {};
  }

  Status skip(uint64_t bytes) {
    SERIN_CHECK(need(bytes));
    at_ += bytes;
    return {};
  }

  template <class T>
  Result<T> read() {
    T value{};
    SERIN_CHECK(need(sizeof value));
    SERIN_CHECK(file_->read(at_, std::as_writable_bytes(std::span(&value, 1))));
    at_ += sizeof value;
    return value;
  }

  Result<TensorDesc> read_desc() {
    SERIN_TRY(const auto length, read<int32_t>());
    if (length < 0 || static_cast<size_t>(length) > kLongestDesc) return damaged(fmt::format("a description of {} bytes", length));
    SERIN_CHECK(need(static_cast<uint64_t>(length)));
    std::vector<std::byte> bytes(static_cast<size_t>(length));
    SERIN_CHECK(file_->read(at_, bytes));
    at_ += bytes.size();
    wire::Decoding decoding{.begin = bytes.data(), .error = {}};
    TensorDesc desc = read_tensor_desc(wire::Message(decoding, "TensorDesc", bytes));
    if (decoding.error) return damaged("its description is no TensorDesc: " + decoding.error->message);
    return desc;
  }

  Result<graph::ConstantPtr> read_elements(const TensorDesc& desc, const Declared& declared) {
    const DType dtype = dtype_of_number(desc.type);
    if (dtype == DType::kUndefined) return Error{Code::kUnsupported, fmt::format("has elements of type number {}", desc.type)};
    uint64_t bytes = dtype_size(dtype);
    bool possible = Shape::fits(desc.dims.size());
    for (const int64_t dim : desc.dims)  // a size of 0 does not excuse the others
      possible = possible && dim >= 0 && !__builtin_mul_overflow(bytes, std::max<uint64_t>(static_cast<uint64_t>(dim), 1), &bytes);
    if (!possible) return damaged(fmt::format("shape [{}]", fmt::join(desc.dims, ",")));
    if (std::ranges::find(desc.dims, 0) != desc.dims.end()) bytes = 0;
    if (declared.dtype != DType::kUndefined && (declared.dtype != dtype || declared.dims != desc.dims))
      return damaged(fmt::format("{}[{}] is stored where the program declares {}[{}]", dtype_name(dtype), fmt::join(desc.dims, ","),
                                 dtype_name(declared.dtype), fmt::join(declared.dims, ",")));
    const FileWindow window{file_, at_};
    SERIN_CHECK(skip(bytes));
    return graph::make_constant(dtype, Shape(desc.dims), [window](std::span<std::byte> to) { return window.read(to); });
  }

  std::shared_ptr<const InputFile> file_;
  size_t at_ = 0;
};

const Declared& declared_type(const Program& program, const Named& parameter) {
  static const Declared none;
  const auto found = program.declared.find(parameter.value);
  return found == program.declared.end() ? none : found->second;
}

/// In the order of the file.
Result<std::vector<Named>> sorted(const Program& program) {
  std::vector<Named> parameters = program.parameters;
  std::ranges::sort(parameters, {}, &Named::name);
  const auto twice = std::ranges::adjacent_find(parameters, {}, &Named::name);
  if (twice != parameters.end()) return Error{Code::kCorrupt, fmt::format("declares parameter '{}' twice", twice->name)};
  return parameters;
}

/// A name is one of a file in the folder itself.
Result<InputFile> open_parameter(const std::string& folder, const std::string& name) {
  if (name.find('/') != std::string::npos)
    return Error{Code::kPermissionDenied, fmt::format("parameter '{}' has a name that is no name of a file", name)};
  return open_beneath(folder, name, "parameter");
}

}  // namespace

Result<Parameters> read_combined(const std::string& path, const Program& program) {
  SERIN_TRY(const auto order, sorted(program));
  SERIN_TRY(InputFile opened, InputFile::open(path));
  const std::string name = path.substr(path.rfind('/') + 1);
  TensorFile file(std::move(opened));
  Parameters result;
  for (const Named& parameter : order) {
    if (file.at_end() && !result.empty())
      return Error{Code::kCorrupt,
                   fmt::format("{} ends after {} of {} parameters: '{}' is missing", name, result.size(), order.size(), parameter.name)};
    auto tensor = file.next(declared_type(program, parameter));
    if (!tensor) return tensor.error().in(fmt::format("{}: parameter '{}'", name, parameter.name));
    result.emplace(parameter.name, std::move(*tensor));
  }
  if (!file.at_end()) return file.damaged(fmt::format("more than the {} parameters of the program", order.size())).in(name);
  return result;
}

Result<Parameters> read_separate(const std::string& folder, const Program& program) {
  SERIN_TRY(const auto order, sorted(program));
  Parameters result;
  for (const Named& parameter : order) {
    SERIN_TRY(InputFile opened, open_parameter(folder, parameter.name));
    TensorFile file(std::move(opened));
    auto tensor = file.next(declared_type(program, parameter));
    if (!tensor) return tensor.error().in(fmt::format("parameter '{}'", parameter.name));
    if (!file.at_end()) return file.damaged("more than one tensor").in(fmt::format("parameter '{}'", parameter.name));
    result.emplace(parameter.name, std::move(*tensor));
  }
  return result;
}

}  // namespace serin::formats::paddle
