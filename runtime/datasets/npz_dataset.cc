// npz_dataset.cc: an array is a column, its axis 0 counts rows. Blocks are read from the file; nothing else is in memory.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/datasets/npz_archive.h"
#include "runtime/datasets/readers.h"

namespace serin::datasets {
namespace {

class NpzDataset : public Dataset {
 public:
  NpzDataset(std::shared_ptr<const StoredFile> file, std::vector<NpzArray> arrays) : file_(std::move(file)), arrays_(std::move(arrays)) {
    for (const NpzArray& array : arrays_) names_.push_back(array.name);
  }

  int64_t rows() const override { return arrays_.front().shape[0]; }
  std::span<const std::string> columns() const override { return names_; }
  std::vector<std::string> files() const override { return {file_->path()}; }
  std::string place(int64_t row) const override { return fmt::format("{}, row {}", file_->path(), row); }

  Result<Rows> read(int64_t first, int64_t count, std::span<const size_t> columns) const override {
    Rows rows{.first = first, .columns = columns.size(), .cells = {}, .faults = {}, .memory = {}};
    const auto number = static_cast<size_t>(count);
    rows.faults.resize(number);
    rows.cells.resize(number * columns.size());
    for (size_t i = 0; i < columns.size(); ++i) {
      const NpzArray& array = arrays_[columns[i]];
      const Shape row(array.shape.dims().subspan(1));
      const size_t bytes = static_cast<size_t>(row.elements()) * dtype_size(array.dtype);
      SERIN_TRY(std::string block, array.file->read(array.offset + static_cast<uint64_t>(first) * bytes, number * bytes));
      char* const data = rows.memory.emplace_back(std::move(block)).data();
      for (size_t at = 0; at < number; ++at)
        rows.cells[at * columns.size() + i] = {Cell::Kind::kNumbers, {array.dtype, row, data + at * bytes}, {}};
    }
    return rows;
  }

 private:
  const std::shared_ptr<const StoredFile> file_;
  const std::vector<NpzArray> arrays_;
  std::vector<std::string> names_;
};

}  // namespace

Result<std::shared_ptr<const Dataset>> open_npz(const std::string& path) {
  SERIN_TRY(std::shared_ptr<const StoredFile> file, StoredFile::open(path));
  SERIN_TRY(std::vector<NpzArray> arrays, find_npz_arrays(file));
  for (const NpzArray& array : arrays) {
    if (array.shape.rank() == 0) return invalid(fmt::format("{}: array '{}' has no axis that counts rows", path, array.name));
    if (array.shape[0] != arrays.front().shape[0])
      return invalid(fmt::format("{}: array '{}' has {} rows, '{}' has {}", path, array.name, array.shape[0], arrays.front().name,
                                 arrays.front().shape[0]));
  }
  return std::make_shared<NpzDataset>(std::move(file), std::move(arrays));
}

}  // namespace serin::datasets
