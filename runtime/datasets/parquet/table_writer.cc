// table_writer.cc: a tensor is lists in each other. An encoded block is a record batch as Arrow sends it, without its schema, which the caller
// knows. A row group ends after kRowGroupBytes, since all of it is in memory until then.

#include "runtime/datasets/parquet/table_writer.h"

#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_nested.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/array/util.h>
#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>

#include <exception>
#include <optional>

namespace serin::datasets::columnar {
namespace {

constexpr int64_t kRowGroupBytes = int64_t{64} << 20;

std::shared_ptr<arrow::DataType> leaf_type(const TableColumn& column) {
  switch (column.dtype) {
    case DType::kBool: return arrow::boolean();
    case DType::kInt8: return arrow::int8();
    case DType::kInt16: return arrow::int16();
    case DType::kInt32: return arrow::int32();
    case DType::kInt64: return arrow::int64();
    case DType::kUInt8: return arrow::uint8();
    case DType::kUInt16: return arrow::uint16();
    case DType::kUInt32: return arrow::uint32();
    case DType::kUInt64: return arrow::uint64();
    case DType::kFloat16: return arrow::float16();
    case DType::kFloat32: return arrow::float32();
    case DType::kFloat64: return arrow::float64();
    case DType::kString: return column.bytes ? arrow::binary() : arrow::utf8();
    default: return arrow::null();
  }
}

std::shared_ptr<arrow::Schema> schema_of(const std::vector<TableColumn>& columns) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  for (const TableColumn& column : columns) {
    std::shared_ptr<arrow::DataType> type = leaf_type(column);
    for (size_t level = 0; level < column.rank; ++level) type = arrow::list(std::move(type));
    fields.push_back(arrow::field(column.name, std::move(type)));
  }
  return arrow::schema(std::move(fields));
}

template <class Type>
arrow::Status append_numbers(arrow::ArrayBuilder& builder, const TensorView& view, int64_t from, int64_t count) {
  using Value = typename Type::c_type;
  return static_cast<arrow::NumericBuilder<Type>&>(builder).AppendValues(view.as<Value>() + from, count);
}

arrow::Status append_leaves(arrow::ArrayBuilder& builder, const TensorView& view, int64_t from, int64_t count) {
  switch (view.dtype) {
    case DType::kBool: return static_cast<arrow::BooleanBuilder&>(builder).AppendValues(view.as<uint8_t>() + from, count);
    case DType::kInt8: return append_numbers<arrow::Int8Type>(builder, view, from, count);
    case DType::kInt16: return append_numbers<arrow::Int16Type>(builder, view, from, count);
    case DType::kInt32: return append_numbers<arrow::Int32Type>(builder, view, from, count);
    case DType::kInt64: return append_numbers<arrow::Int64Type>(builder, view, from, count);
    case DType::kUInt8: return append_numbers<arrow::UInt8Type>(builder, view, from, count);
    case DType::kUInt16: return append_numbers<arrow::UInt16Type>(builder, view, from, count);
    case DType::kUInt32: return append_numbers<arrow::UInt32Type>(builder, view, from, count);
    case DType::kUInt64: return append_numbers<arrow::UInt64Type>(builder, view, from, count);
    case DType::kFloat16: return append_numbers<arrow::HalfFloatType>(builder, view, from, count);
    case DType::kFloat32: return append_numbers<arrow::FloatType>(builder, view, from, count);
    case DType::kFloat64: return append_numbers<arrow::DoubleType>(builder, view, from, count);
    case DType::kString:
      for (int64_t i = from; i < from + count; ++i)
        ARROW_RETURN_NOT_OK(static_cast<arrow::BinaryBuilder&>(builder).Append(view.as<std::string>()[i]));
      return arrow::Status::OK();
    default: return arrow::Status::NotImplemented("elements of type ", std::string(dtype_name(view.dtype)));
  }
}

/// The part of a tensor from axis `axis` on whose first element is `from`; moves `from` behind it.
arrow::Status append_axis(arrow::ArrayBuilder& builder, const TensorView& view, size_t axis, int64_t& from) {
  if (axis == view.shape.rank()) return append_leaves(builder, view, from++, 1);
  auto& list = static_cast<arrow::ListBuilder&>(builder);
  ARROW_RETURN_NOT_OK(list.Append());
  const int64_t length = view.shape[axis];
  if (axis + 1 == view.shape.rank()) {
    ARROW_RETURN_NOT_OK(append_leaves(*list.value_builder(), view, from, length));
    from += length;
    return arrow::Status::OK();
  }
  for (int64_t i = 0; i < length; ++i) ARROW_RETURN_NOT_OK(append_axis(*list.value_builder(), view, axis + 1, from));
  return arrow::Status::OK();
}

arrow::Status append_cell(arrow::ArrayBuilder& builder, const TableColumn& column, const Cell& cell) {
  if (cell.kind == Cell::Kind::kMissing) return builder.AppendNull();
  if (cell.kind == Cell::Kind::kNumbers) {
    if (cell.numbers.dtype != column.dtype || cell.numbers.shape.rank() != column.rank)
      return arrow::Status::Invalid(fmt::format("is {}{} for a row, and {} of rank {} for others: write .jsonl",
                                                dtype_name(cell.numbers.dtype), cell.numbers.shape.str(), dtype_name(column.dtype),
                                                column.rank));
    int64_t from = 0;
    return append_axis(builder, cell.numbers, 0, from);
  }
  if (column.dtype != DType::kString || column.rank != 0)
    return arrow::Status::Invalid(fmt::format("is a text for a row, and {} for others: write .jsonl", dtype_name(column.dtype)));
  return static_cast<arrow::BinaryBuilder&>(builder).Append(cell.text);
}

/// Calls `use` and makes Serin's errors of Arrow's.
template <class Value, class Use>
Result<Value> from_arrow(const Use& use) {
  try {
    arrow::Result<Value> made = use();
    if (made.ok()) return *std::move(made);
    return Error{made.status().IsNotImplemented() ? Code::kUnsupported : Code::kInvalidArgument, made.status().message()};
  } catch (const std::exception& error) {
    return Error{Code::kInternal, fmt::format("Arrow: {}", error.what())};
  }
}

arrow::Result<std::string> encode_cells(const std::vector<TableColumn>& columns, std::span<const Cell> cells) {
  const auto schema = schema_of(columns);
  const auto rows = static_cast<int64_t>(cells.size() / columns.size());
  std::vector<std::shared_ptr<arrow::Array>> arrays;
  for (size_t i = 0; i < columns.size(); ++i) {
    std::unique_ptr<arrow::ArrayBuilder> builder;
    ARROW_RETURN_NOT_OK(arrow::MakeBuilder(arrow::default_memory_pool(), schema->field(static_cast<int>(i))->type(), &builder));
    for (size_t at = i; at < cells.size(); at += columns.size()) {
      const arrow::Status appended = append_cell(*builder, columns[i], cells[at]);
      if (!appended.ok()) return appended.WithMessage("'", columns[i].name, "' ", appended.message());
    }
    ARROW_RETURN_NOT_OK(builder->Finish(&arrays.emplace_back()));
  }
  ARROW_ASSIGN_OR_RAISE(const auto bytes, arrow::ipc::SerializeRecordBatch(*arrow::RecordBatch::Make(schema, rows, std::move(arrays)),
                                                                           arrow::ipc::IpcWriteOptions::Defaults()));
  return bytes->ToString();
}

class Sink : public arrow::io::OutputStream {
 public:
  explicit Sink(std::function<Status(std::string_view)> to) : to_(std::move(to)) {}
  using arrow::io::OutputStream::Write;
  arrow::Status Write(const void* data, int64_t bytes) override {
    const Status written = to_({static_cast<const char*>(data), static_cast<size_t>(bytes)});
    position_ += bytes;
    if (written) return arrow::Status::OK();
    failure_ = written.error();
    return arrow::Status::IOError(written.error().message);
  }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  const std::optional<Error>& failure() const { return failure_; }

 private:
  const std::function<Status(std::string_view)> to_;
  std::optional<Error> failure_;
  int64_t position_ = 0;
  bool closed_ = false;
};

class ParquetWriter : public TableWriter {
 public:
  ParquetWriter(const std::vector<TableColumn>& columns, std::function<Status(std::string_view)> to)
      : schema_(schema_of(columns)), sink_(std::make_shared<Sink>(std::move(to))) {}

  Status begin() {
    return done([&]() -> arrow::Status {
      const auto properties = parquet::WriterProperties::Builder().compression(arrow::Compression::SNAPPY)->build();
      ARROW_ASSIGN_OR_RAISE(writer_, parquet::arrow::FileWriter::Open(*schema_, arrow::default_memory_pool(), sink_, properties,
                                                                      parquet::ArrowWriterProperties::Builder().store_schema()->build()));
      return writer_->NewBufferedRowGroup();
    });
  }

  Status append(const std::vector<TableColumn>& columns, std::string_view block) override {
    return done([&]() -> arrow::Status {
      arrow::io::BufferReader bytes(std::make_shared<arrow::Buffer>(block));
      const arrow::ipc::DictionaryMemo none;
      auto options = arrow::ipc::IpcReadOptions::Defaults();
      options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;  // a block lies at any address
      ARROW_ASSIGN_OR_RAISE(auto batch, arrow::ipc::ReadRecordBatch(schema_of(columns), &none, options, &bytes));
      ARROW_ASSIGN_OR_RAISE(batch, with_types(*batch));
      if (group_bytes_ > kRowGroupBytes) {
        ARROW_RETURN_NOT_OK(writer_->NewBufferedRowGroup());
        group_bytes_ = 0;
      }
      group_bytes_ += static_cast<int64_t>(block.size());
      return writer_->WriteRecordBatch(*batch);
    });
  }

  Status finish() override {
    return done([&] { return writer_->Close(); });
  }

 private:
  /// A block has columns without a value as null, and texts as texts where bytes came in other blocks.
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> with_types(const arrow::RecordBatch& batch) const {
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    for (int i = 0; i < batch.num_columns(); ++i) {
      auto& array = arrays.emplace_back(batch.column(i));
      const auto& type = schema_->field(i)->type();
      if (array->type()->Equals(type)) continue;
      if (array->type_id() == arrow::Type::NA) {
        ARROW_ASSIGN_OR_RAISE(array, arrow::MakeArrayOfNull(type, batch.num_rows()));
      } else {
        ARROW_ASSIGN_OR_RAISE(array, array->View(type));
      }
    }
    return arrow::RecordBatch::Make(schema_, batch.num_rows(), std::move(arrays));
  }

  template <class Use>
  Status done(const Use& use) {
    try {
      const arrow::Status status = use();
      if (status.ok()) return {};
      if (sink_->failure()) return *sink_->failure();
      return Error{Code::kInternal, fmt::format("Arrow: {}", status.message())};
    } catch (const std::exception& error) {
      return Error{Code::kInternal, fmt::format("Arrow: {}", error.what())};
    }
  }

  const std::shared_ptr<arrow::Schema> schema_;
  const std::shared_ptr<Sink> sink_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  int64_t group_bytes_ = 0;
};

}  // namespace

Result<std::string> encode_block(const std::vector<TableColumn>& columns, std::span<const Cell> cells) {
  return from_arrow<std::string>([&] { return encode_cells(columns, cells); });
}

Result<std::unique_ptr<TableWriter>> write_table(const std::vector<TableColumn>& columns, std::function<Status(std::string_view)> to) {
  auto writer = std::make_unique<ParquetWriter>(columns, std::move(to));
  SERIN_CHECK(writer->begin());
  return std::unique_ptr<TableWriter>(std::move(writer));
}

}  // namespace serin::datasets::columnar
