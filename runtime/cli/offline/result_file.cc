// result_file.cc: rows as JSON lines, as CSV, or as arrays of NumPy.
//
// JSONL and CSV: a block is its lines. npz: a block has, for each array, the number of axes and the sizes of a row, and then its elements;
// joining takes one pass over the blocks for each array, so only one block is in memory.

#include "runtime/cli/offline/result_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>

#include "runtime/base/json_quote.h"
#include "runtime/base/utf8.h"
#include "runtime/cli/offline/npz_writer.h"
#include "runtime/cli/offline/output_stream.h"
#include "runtime/datasets/convert.h"
#include "runtime/protocol/json/json_write.h"

namespace serin::cli {
namespace {

constexpr std::string_view kRowName = "row";

void append_json(std::string& out, const TensorView& view) {
  if (view.dtype != DType::kString) return protocol::append_nested(out, view);
  protocol::append_nested(out, view.shape, 0, 0, view.elements(), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      if (i > first) out += ',';
      append_json_quoted(out, view.as<std::string>()[i]);
    }
  });
}

void append_json(std::string& out, const datasets::Cell& cell) {
  switch (cell.kind) {
    case datasets::Cell::Kind::kMissing: out += "null"; return;
    case datasets::Cell::Kind::kNumbers: return append_json(out, cell.numbers);
    case datasets::Cell::Kind::kJson: out += cell.text; return;
    case datasets::Cell::Kind::kText:
    case datasets::Cell::Kind::kField: return append_json_quoted(out, cell.text);
  }
}

class JsonLines : public ResultFile {
 public:
  explicit JsonLines(ResultShape shape) : shape_(std::move(shape)) {
    for (const std::string& name : shape_.kept) append_json_quoted(kept_.emplace_back(","), name);
    for (const steps::TensorFacts& output : shape_.outputs) append_json_quoted(outputs_.emplace_back(","), output.name);
  }

  Result<std::string> encode(const datasets::Rows& rows, const Answers& answers) const override {
    std::string text;
    for (size_t row = 0; row < rows.count(); ++row) {
      if (answers.faults[row]) continue;
      text += R"({"row":)" + std::to_string(rows.first + static_cast<int64_t>(row));
      for (size_t i = 0; i < kept_.size(); ++i) {
        text.append(kept_[i]) += ':';
        append_json(text, rows.cell(row, shape_.first_kept + i));
      }
      for (size_t i = 0; i < outputs_.size(); ++i) {
        text.append(outputs_[i]) += ':';
        append_json(text, answers.row(row)[i]);
      }
      text += "}\n";
    }
    return text;
  }

  Status join(const std::string& path, int64_t blocks, const std::function<Result<std::string>(int64_t)>& read) const override {
    SERIN_TRY(auto out, OutputStream::create(path));
    for (int64_t block = 0; block < blocks; ++block) {
      SERIN_TRY(const std::string text, read(block));
      SERIN_CHECK(out.write(text));
    }
    return out.finish();
  }

 private:
  const ResultShape shape_;
  std::vector<std::string> kept_, outputs_;  // ,"name"
};

class Csv : public ResultFile {
 public:
  Csv(ResultShape shape, char separator) : shape_(std::move(shape)), separator_(separator) {
    header_ = kRowName;
    for (const std::string& name : shape_.kept) append_field(header_ += separator_, name);
    for (const steps::TensorFacts& output : shape_.outputs) append_field(header_ += separator_, output.name);
    header_ += '\n';
  }

  Result<std::string> encode(const datasets::Rows& rows, const Answers& answers) const override {
    std::string text, field;
    for (size_t row = 0; row < rows.count(); ++row) {
      if (answers.faults[row]) continue;
      text += std::to_string(rows.first + static_cast<int64_t>(row));
      for (size_t i = 0; i < shape_.kept.size(); ++i) {
        const datasets::Cell& cell = rows.cell(row, shape_.first_kept + i);
        field.clear();
        if (cell.kind == datasets::Cell::Kind::kNumbers) append_json(field, cell.numbers);
        append_field(text += separator_, cell.kind == datasets::Cell::Kind::kNumbers ? std::string_view(field) : cell.text);
      }
      for (const TensorView& view : answers.row(row)) {
        const bool plain = view.dtype == DType::kString && view.elements() == 1;
        field.clear();
        if (view.elements() == 1) {  // [1] is a number here
          if (!plain) append_json(field, TensorView{view.dtype, {}, view.data});
        } else {
          append_json(field, view);
        }
        append_field(text += separator_, plain ? std::string_view(*view.as<std::string>()) : field);
      }
      text += '\n';
    }
    return text;
  }

  Status join(const std::string& path, int64_t blocks, const std::function<Result<std::string>(int64_t)>& read) const override {
    SERIN_TRY(auto out, OutputStream::create(path));
    SERIN_CHECK(out.write(header_));
    for (int64_t block = 0; block < blocks; ++block) {
      SERIN_TRY(const std::string text, read(block));
      SERIN_CHECK(out.write(text));
    }
    return out.finish();
  }

 private:
  /// An empty text gets quotation marks, so that it is not a missing value.
  void append_field(std::string& out, std::string_view text) const {
    const char special[] = {separator_, '"', '\n', '\r', ' ', '\0'};
    if (!text.empty() && text.find_first_of(special) == std::string_view::npos) {
      out += text;
      return;
    }
    out += '"';
    for (const char c : text) {
      if (c == '"') out += '"';
      out += c;
    }
    out += '"';
  }

  const ResultShape shape_;
  const char separator_;
  std::string header_;
};

class NpzArrays : public ResultFile {
 public:
  explicit NpzArrays(ResultShape shape) : shape_(std::move(shape)) {}

  Result<std::string> encode(const datasets::Rows& rows, const Answers& answers) const override {
    std::string text;
    const auto append = [&](const void* bytes, size_t count) { text.append(static_cast<const char*>(bytes), count); };
    std::vector<size_t> good;
    for (size_t row = 0; row < rows.count(); ++row)
      if (!answers.faults[row]) good.push_back(row);
    const auto count = static_cast<uint64_t>(good.size());
    append(&count, sizeof count);
    for (const size_t row : good) {
      const int64_t number = rows.first + static_cast<int64_t>(row);
      append(&number, sizeof number);
    }
    for (size_t i = 0; i < shape_.outputs.size() && !good.empty(); ++i) {
      const TensorView& first = answers.row(good.front())[i];
      const auto rank = static_cast<uint64_t>(first.shape.rank());
      append(&rank, sizeof rank);
      append(first.shape.dims().data(), rank * sizeof(int64_t));
      for (const size_t row : good) {
        const TensorView& view = answers.row(row)[i];
        if (view.shape != first.shape) return sizes_differ(i, view.shape, first.shape);
        append(view.data, view.bytes());
      }
    }
    return text;
  }

  Status join(const std::string& path, int64_t blocks, const std::function<Result<std::string>(int64_t)>& read) const override {
    // The first pass finds how many rows there are, and the sizes of their tensors.
    int64_t rows = 0;
    std::vector<std::optional<Shape>> shapes(shape_.outputs.size());
    for (int64_t block = 0; block < blocks; ++block) {
      SERIN_TRY(const std::string text, read(block));
      SERIN_TRY(const Parts parts, parts_of(text));
      rows += parts.rows;
      for (size_t i = 0; i < shapes.size() && parts.rows > 0; ++i) {
        if (shapes[i].value_or(parts.shapes[i]) != parts.shapes[i]) return sizes_differ(i, parts.shapes[i], *shapes[i]);
        shapes[i] = parts.shapes[i];
      }
    }
    SERIN_TRY(auto out, NpzWriter::create(path));
    for (size_t array = 0; array <= shapes.size(); ++array) {  // the first one has the numbers of the rows
      Shape shape{rows};
      if (array > 0)
        for (const int64_t dim : shapes[array - 1].value_or(Shape())) shape.push_back(dim);
      SERIN_CHECK(out.begin(array == 0 ? std::string(kRowName) : shape_.outputs[array - 1].name,
                            array == 0 ? DType::kInt64 : shape_.outputs[array - 1].dtype, shape));
      for (int64_t block = 0; block < blocks; ++block) {
        SERIN_TRY(const std::string text, read(block));
        SERIN_TRY(const Parts parts, parts_of(text));
        if (parts.rows > 0) SERIN_CHECK(out.write(parts.bytes[array]));
      }
    }
    return out.finish();
  }

 private:
  struct Parts {
    int64_t rows = 0;
    std::vector<Shape> shapes;            ///< of a row of each output
    std::vector<std::string_view> bytes;  ///< numbers of the rows, then each output
  };

  Error sizes_differ(size_t output, const Shape& one, const Shape& other) const {
    return invalid(fmt::format("output '{}' is {} for one row and {} for another, which no array of .npz holds: write .jsonl",
                               shape_.outputs[output].name, other.str(), one.str()));
  }

  /// Blocks come from a store that has checked them.
  Result<Parts> parts_of(std::string_view text) const {
    Error damaged{Code::kCorrupt, "a stored block is damaged"};
    Parts parts;
    const auto take = [&](size_t bytes) {
      const std::string_view taken = text.substr(0, bytes);
      text.remove_prefix(std::min(bytes, text.size()));
      return taken;
    };
    const auto number = [&](std::string_view bytes) {
      uint64_t value = 0;
      std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
      return value;
    };
    parts.rows = static_cast<int64_t>(number(take(8)));
    if (parts.rows < 0 || static_cast<uint64_t>(parts.rows) > text.size() / 8) return damaged;
    parts.bytes.push_back(take(static_cast<size_t>(parts.rows) * 8));
    for (size_t i = 0; i < shape_.outputs.size() && parts.rows > 0; ++i) {
      const uint64_t rank = number(take(8));
      if (!Shape::fits(rank) || rank * 8 > text.size()) return damaged;
      Shape& shape = parts.shapes.emplace_back();
      for (uint64_t axis = 0; axis < rank; ++axis) shape.push_back(static_cast<int64_t>(number(take(8))));
      const auto bytes = static_cast<size_t>(parts.rows * shape.checked_elements().value_or(0)) * dtype_size(shape_.outputs[i].dtype);
      if (bytes > text.size()) return damaged;
      parts.bytes.push_back(take(bytes));
    }
    return parts;
  }

  const ResultShape shape_;
};

}  // namespace

Status check_result_names(const ResultShape& shape) {
  std::set<std::string, std::less<>> names{std::string(kRowName)};
  const auto add = [&](const std::string& name, std::string_view kind) -> Status {
    if (names.insert(name).second) return {};
    return invalid(fmt::format("{} '{}': two results would have that name", kind, name));
  };
  for (const std::string& name : shape.kept) SERIN_CHECK(add(name, "column"));
  for (const steps::TensorFacts& output : shape.outputs) SERIN_CHECK(add(output.name, "output"));
  return {};
}

Result<std::unique_ptr<const ResultFile>> make_result_file(const std::string& path, ResultShape shape) {
  SERIN_CHECK(check_result_names(shape));
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".jsonl" || ending == ".ndjson") return std::make_unique<const JsonLines>(std::move(shape));
  if (ending == ".csv" || ending == ".tsv") return std::make_unique<const Csv>(std::move(shape), ending == ".csv" ? ',' : '\t');
  if (ending != ".npz") return invalid(fmt::format("{}: results are written as .jsonl, .csv, .tsv, .npz or .parquet", path));
  if (!shape.kept.empty()) return invalid(path + ": --keep goes with .jsonl, .csv, .tsv and .parquet");
  for (const steps::TensorFacts& output : shape.outputs)
    if (!npz_descr(output.dtype))
      return invalid(fmt::format("{}: output '{}' is of type {}, which .npz does not hold: write .jsonl", path, output.name,
                                 dtype_name(output.dtype)));
  return std::make_unique<const NpzArrays>(std::move(shape));
}

}  // namespace serin::cli
