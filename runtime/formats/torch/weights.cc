// weights.cc: a tensor is a part of a stored storage, with strides. Nearly all are dense; others (a transposed weight) are put in order when
// they are read.

#include "runtime/formats/torch/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace serin::formats::torch {
namespace {

constexpr size_t kConfigLimit = size_t{256} << 20;

Error bad_weight(std::string_view name, std::string_view problem) { return {Code::kCorrupt, fmt::format("weight '{}' {}", name, problem)}; }

/// A tensor within a storage, in elements.
struct Layout {
  Shape shape;
  std::vector<int64_t> strides;
  bool dense = true;
  int64_t count = 1;   ///< of its elements
  int64_t extent = 0;  ///< elements of the storage from its first to its last
};

Result<Layout> layout_of(std::string_view name, const TensorMeta& meta) {
  Layout layout;
  const auto shape = graph::known_shape(meta.sizes);
  if (!shape) return bad_weight(name, "has no known sizes");
  layout.shape = *shape;
  constexpr int64_t kMost = int64_t{1} << 48;
  int64_t count = 1;  // a size of 0 does not excuse the others
  for (size_t i = 0; i < meta.sizes.size(); ++i) {
    const int64_t size = *meta.sizes[i].value();
    if (size > 1 && count > kMost / size) return bad_weight(name, "has too many elements");
    count *= std::max<int64_t>(size, 1);
    layout.count *= std::min<int64_t>(size, 1);
  }
  layout.count *= count;
  if (meta.strides.size() != meta.sizes.size()) return bad_weight(name, "has another number of strides than sizes");
  int64_t expected = 1, last = 0;
  layout.strides.resize(meta.sizes.size());
  for (size_t i = meta.sizes.size(); i-- > 0;) {
    const int64_t size = *meta.sizes[i].value(), stride = meta.strides[i].value_or(-1);
    if (stride < 0 || stride > kMost) return bad_weight(name, "has an impossible stride");
    layout.strides[i] = stride;
    if (size != 1 && stride != expected) layout.dense = false;
    expected *= size;
    if (size > 1) {
      if (stride != 0 && size - 1 > kMost / stride) return bad_weight(name, "reaches too far");
      last += (size - 1) * stride;
      if (last > kMost) return bad_weight(name, "reaches too far");
    }
  }
  layout.extent = layout.count == 0 ? 0 : last + 1;
  return layout;
}

/// Complex numbers as an axis of two parts, side by side in the file.
void count_parts(TensorMeta& meta) {
  constexpr int64_t kMost = int64_t{1} << 61;  // further ones are refused as they are
  meta.sizes.emplace_back(2);
  for (auto& stride : meta.strides)
    if (stride && *stride < kMost) *stride *= 2;
  meta.strides.emplace_back(1);
  if (meta.storage_offset && *meta.storage_offset < kMost) *meta.storage_offset *= 2;
}

/// `to`: the elements in order.
void put_in_order(const Layout& layout, size_t width, const std::byte* from, std::byte* to) {
  std::vector<int64_t> place(layout.strides.size(), 0);
  int64_t at = 0;
  for (int64_t i = 0; i < layout.count; ++i, to += width) {
    std::memcpy(to, from + static_cast<size_t>(at) * width, width);
    for (size_t axis = place.size(); axis-- > 0;) {
      at += layout.strides[axis];
      if (++place[axis] < layout.shape[static_cast<int>(axis)]) break;
      at -= place[axis] * layout.strides[axis];
      place[axis] = 0;
    }
  }
}

Status read_elements(const FileWindow& window, const Layout& layout, DType dtype, std::span<std::byte> to) {
  if (layout.dense) {
    SERIN_CHECK(window.read(to));
  } else {
    const size_t width = dtype_size(dtype);
    std::vector<std::byte> storage(static_cast<size_t>(layout.extent) * width);
    SERIN_CHECK(window.read(storage));
    put_in_order(layout, width, storage.data(), to.data());
  }
  if (dtype == DType::kBool)
    for (std::byte& each : to) each = std::byte{each != std::byte{0}};
  return {};
}

}  // namespace

Result<Weights> Weights::read(const ZipArchive& archive, const std::string& folder, std::string_view config) {
  Weights weights;
  weights.archive_ = &archive;
  const std::string name = folder + std::string(config);
  if (!archive.find(name)) return weights;
  SERIN_TRY(std::string text, archive.read(name, kConfigLimit));
  auto document = JsonDocument::parse(std::move(text));
  if (!document) return document.error().in(name);
  weights.document_ = std::move(*document);
  const Json rows = weights.document_.root()["config"];
  if (!rows.is_object()) return Error{Code::kCorrupt, name + ": has no 'config'"};
  for (const auto& [key, value] : rows.members()) {
    const auto path = value["path_name"].text();
    if (!path) return Error{Code::kCorrupt, fmt::format("{}: '{}' has no path", name, key)};
    weights.rows_.emplace(key, Row{folder + *path, value["use_pickle"].boolean().value_or(false), value["tensor_meta"]});
  }
  return weights;
}

Result<graph::ConstantPtr> Weights::get(std::string_view name) const {
  const auto found = rows_.find(name);
  if (found == rows_.end()) return Error{Code::kNotFound, fmt::format("weight '{}' is not in the archive", name)};
  const Row& row = found->second;
  if (row.pickled)
    return Error{Code::kUnsupported, fmt::format("weight '{}' is stored as a pickle, which is never read: it is no plain tensor", name)};
  auto meta = read_tensor_meta(row.meta);
  if (!meta) return meta.error().in(fmt::format("weight '{}'", name));
  if (meta->complex) count_parts(*meta);
  SERIN_TRY(const Layout layout, layout_of(name, *meta));
  const ZipEntry* const entry = archive_->find(row.path);
  if (!entry) return bad_weight(name, fmt::format("has its bytes in '{}', which is not in the archive", row.path));
  const int64_t offset = meta->storage_offset.value_or(-1);
  const size_t width = dtype_size(meta->dtype), elements = entry->size / width;
  if (offset < 0 || static_cast<uint64_t>(offset) > elements ||
      static_cast<uint64_t>(layout.extent) > elements - static_cast<uint64_t>(offset))
    return bad_weight(
        name, fmt::format("needs {} elements from {} on of '{}', which has {} bytes", layout.extent, offset, row.path, entry->size));
  const FileWindow window{archive_->file(), entry->offset + static_cast<size_t>(offset) * width};
  // Broadcast axes (stride 0) make more elements than there are bytes.
  if (layout.count > 4 * layout.extent && static_cast<size_t>(layout.count) * width > (size_t{64} << 20))
    return bad_weight(name, "repeats its elements without end");
  return graph::make_constant(meta->dtype, layout.shape, [window, layout, dtype = meta->dtype](std::span<std::byte> to) {
    return read_elements(window, layout, dtype, to);
  });
}

}  // namespace serin::formats::torch
