// Parquet by its plugin: each kind of column (tests/data/tables/make_tables.py wrote the file), blocks in any order and on any thread, and
// damaged files, of which any number may come and none may end the program.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/datasets/convert.h"
#include "runtime/datasets/readers.h"

namespace serin::datasets {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kMixedFile = std::string(SERIN_TEST_DATA) + "/tables/mixed.parquet";
constexpr int64_t kMixedRows = 40;

#ifdef SERIN_PARQUET_PLUGIN
const std::string kParquetPlugin = SERIN_PARQUET_PLUGIN;
#else
const std::string kParquetPlugin;
#endif

class Parquet : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kParquetPlugin.empty()) GTEST_SKIP() << "Arrow is not installed here (deploy/install-deps)";
  }
  static std::shared_ptr<const Dataset> mixed() {
    auto data = open_parquet(kMixedFile, kParquetPlugin);
    EXPECT_TRUE(data) << data.error().message;
    return *data;
  }
};

/// "i32[] 5", "f32[2] 5.5 -5", "text abc", "nothing": a cell for comparisons; or what is wrong with the row.
std::string shown(const Rows& rows, size_t row, size_t column) {
  if (rows.faults[row]) return rows.faults[row]->message;
  const Cell& cell = rows.cell(row, column);
  if (cell.kind == Cell::Kind::kMissing) return "nothing";
  if (cell.kind == Cell::Kind::kText) return "text " + std::string(cell.text);
  std::string text = std::string(dtype_name(cell.numbers.dtype)) + cell.numbers.shape.str();
  std::vector<std::byte> bytes;
  if (!append_elements({&cell, 1}, DType::kFloat64, cell.numbers.shape, bytes)) return "no numbers";
  for (size_t at = 0; at < bytes.size(); at += sizeof(double)) {
    double number = 0;
    std::memcpy(&number, bytes.data() + at, sizeof number);
    text += fmt::format(" {}", number);
  }
  return text;
}

/// Rows of one column.
std::vector<std::string> column_of(const Dataset& data, std::string_view name, int64_t first, int64_t count) {
  const auto column = data.column(name);
  if (!column) return {column.error().message};
  const auto rows = data.read(first, count, std::array{*column});
  if (!rows) return {rows.error().message};
  std::vector<std::string> found;
  for (size_t row = 0; row < rows->count(); ++row) found.push_back(shown(*rows, row, 0));
  return found;
}

TEST_F(Parquet, HasTheRowsAndColumnsOfTheFile) {
  const auto data = mixed();
  EXPECT_EQ(data->rows(), kMixedRows);
  EXPECT_EQ(data->place(7), kMixedFile + ", row 7");
  EXPECT_THAT(data->files(), ElementsAre(kMixedFile));
  EXPECT_THAT(*data->columns_of("image.*,bool"),
              ElementsAre(*data->column("image.bytes"), *data->column("image.path"), *data->column("bool")));
  EXPECT_THAT(data->column("texts").error().message, HasSubstr("there is no column 'texts'; did you mean 'text'?"));
}

TEST_F(Parquet, ReadsNumbersOfEachType) {
  const auto data = mixed();
  for (const auto& [name, type] : {std::pair{"int8", "i8"}, {"int16", "i16"}, {"int32", "i32"}, {"int64", "i64"}})
    EXPECT_THAT(column_of(*data, name, 15, 2), ElementsAre(std::string(type) + "[] -5", std::string(type) + "[] -4")) << name;
  for (const auto& [name, type] : {std::pair{"uint8", "u8"}, {"uint16", "u16"}, {"uint32", "u32"}, {"uint64", "u64"}})
    EXPECT_THAT(column_of(*data, name, 15, 2), ElementsAre(std::string(type) + "[] 15", std::string(type) + "[] 16")) << name;
  EXPECT_THAT(column_of(*data, "half", 31, 2), ElementsAre("f16[] 15.5", "f16[] 16"));
  EXPECT_THAT(column_of(*data, "float", 31, 2), ElementsAre("f32[] 7.75", "f32[] 8"));
  EXPECT_THAT(column_of(*data, "double", 31, 2), ElementsAre("f64[] 3.875", "f64[] 4"));
  EXPECT_THAT(column_of(*data, "bool", 15, 2), ElementsAre("bool[] 1", "bool[] 0"));
  EXPECT_THAT(column_of(*data, "maybe", 15, 2), ElementsAre("i32[] 15", "nothing"));
  EXPECT_THAT(column_of(*data, "nothing", 15, 2), ElementsAre("nothing", "nothing"));
}

TEST_F(Parquet, ReadsTextsAndBytes) {
  const auto data = mixed();
  EXPECT_THAT(column_of(*data, "text", 15, 2), ElementsAre("text text 15", "text text 16"));
  EXPECT_THAT(column_of(*data, "large_text", 39, 1), ElementsAre("text large 39"));
  EXPECT_THAT(column_of(*data, "bytes", 17, 1), ElementsAre(std::string("text \x11\0\xff", 8)));
  EXPECT_THAT(column_of(*data, "two_bytes", 17, 1), ElementsAre("text \x11\x01"));
  EXPECT_THAT(column_of(*data, "category", 15, 3), ElementsAre("text ant", "text bee", "text cat"));
  EXPECT_THAT(column_of(*data, "image.bytes", 2, 2), ElementsAre("text picture 2", "nothing"));
  EXPECT_THAT(column_of(*data, "image.path", 16, 1), ElementsAre("text 16.png"));
}

TEST_F(Parquet, ReadsListsAsTensors) {
  const auto data = mixed();
  EXPECT_THAT(column_of(*data, "list", 15, 2), ElementsAre("f32[2] 15.5 -15", "f32[2] 16.5 -16"));
  EXPECT_THAT(column_of(*data, "fixed", 31, 2), ElementsAre("u8[3] 31 32 33", "u8[3] 32 33 34"));
  EXPECT_THAT(column_of(*data, "bools", 16, 2), ElementsAre("bool[2] 1 1", "bool[2] 1 0"));
  EXPECT_THAT(column_of(*data, "matrix", 35, 1), ElementsAre("i64[2,3] 35 1 2 3 4 35"));
  EXPECT_THAT(column_of(*data, "list_maybe", 20, 5), ElementsAre("f32[2] 20 20", "f32[0]", "nothing", "f32[0]", "f32[0]"));
}

TEST_F(Parquet, RowsAtFaultAreNamedAndOthersAreRead) {
  const auto data = mixed();
  EXPECT_THAT(column_of(*data, "ragged", 4, 2), ElementsAre("i32[2,1] 4 4", "column 'ragged': lists of different lengths"));
  EXPECT_THAT(column_of(*data, "holes", 19, 3), ElementsAre("f64[2] 19 19", "column 'holes': element 1 of 2 is null", "f64[2] 21 21"));
  EXPECT_THAT(column_of(*data, "lists_null", 20, 2), ElementsAre("f32[2,1] 20 20", "column 'lists_null': a list in it is null"));
}

TEST_F(Parquet, TypesWithoutAMeaningAreNamed) {
  const auto data = mixed();
  for (const auto& [name, type] : {std::pair{"day", "date32[day]"},
                                   {"moment", "timestamp[ms]"},
                                   {"price", "decimal128(9, 2)"},
                                   {"words", "list<element: string>"},
                                   {"map", "map<string, int32"},
                                   {"boxes", "list<element: struct<x: int64>>"}}) {
    const auto column = data->column(name);
    ASSERT_FALSE(column) << name;
    EXPECT_EQ(column.error().code, Code::kUnsupported);
    EXPECT_THAT(column.error().message, StartsWith(fmt::format("column '{}' is of type {}", name, type)));
  }
  EXPECT_THAT(data->columns_of("d*").error().message, HasSubstr("column 'day' is of type date32[day]"));
}

TEST_F(Parquet, AnyBlockIsReadByItself) {
  const auto data = mixed();
  std::vector<size_t> columns;
  for (const char* name : {"list", "text", "image.bytes", "maybe", "text"}) columns.push_back(*data->column(name));
  std::minstd_rand random(7);
  for (int i = 0; i < 200; ++i) {
    const auto first = static_cast<int64_t>(random() % kMixedRows);
    const auto count = static_cast<int64_t>(random() % (kMixedRows - first) + 1);
    const auto rows = data->read(first, count, columns);
    ASSERT_TRUE(rows) << rows.error().message;
    ASSERT_EQ(rows->count(), static_cast<size_t>(count));
    for (size_t row = 0; row < rows->count(); ++row) {
      const int64_t n = first + static_cast<int64_t>(row);
      ASSERT_EQ(shown(*rows, row, 0), fmt::format("f32[2] {} {}", static_cast<double>(n) + 0.5, -n));
      ASSERT_EQ(shown(*rows, row, 1), fmt::format("text text {}", n));
      ASSERT_EQ(shown(*rows, row, 2), n == 3 ? "nothing" : fmt::format("text picture {}", n));
      ASSERT_EQ(shown(*rows, row, 3), n % 4 == 0 ? "nothing" : fmt::format("i32[] {}", n));
      ASSERT_EQ(shown(*rows, row, 4), shown(*rows, row, 1));
    }
  }
  EXPECT_EQ(data->read(5, 3, {})->count(), 3U);
}

TEST_F(Parquet, ThreadsReadBlocksOfOneFile) {
  const auto data = mixed();
  const size_t column = *data->column("matrix");
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      for (int64_t i = 0; i < 100; ++i) {
        const int64_t row = (i * 7 + thread * 5) % kMixedRows;
        const auto rows = data->read(row, 1, std::array{column});
        if (!rows || shown(*rows, 0, 0) != fmt::format("i64[2,3] {0} 1 2 3 4 {0}", row)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

/// Opens a file and reads all of each column; what went wrong first, or nothing.
std::string first_error(const std::string& path) {
  const auto data = open_parquet(path, kParquetPlugin);
  if (!data) return data.error().message;
  for (size_t column = 0; column < (*data)->columns().size(); ++column) {
    if (!(*data)->readable(column)) continue;
    for (int64_t row = 0; row < (*data)->rows() && row < 1000; row += 7) {
      const auto rows = (*data)->read(row, std::min<int64_t>(7, (*data)->rows() - row), std::array{column});
      if (!rows) return rows.error().message;
      for (size_t i = 0; i < rows->count(); ++i) shown(*rows, i, 0);  // under sanitizers: nothing outside of the file is read
    }
  }
  return {};
}

class DamagedParquet : public Parquet {
 protected:
  DamagedParquet() : whole_(*read_file(kMixedFile, 1 << 20)), path_(::testing::TempDir() + fmt::format("damaged_{}.parquet", ::getpid())) {}
  ~DamagedParquet() override { std::filesystem::remove(path_); }
  std::string error_of(std::string_view bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    return first_error(path_);
  }
  const std::string whole_, path_;
};

TEST_F(DamagedParquet, TheWholeFileIsRead) { EXPECT_EQ(error_of(whole_), ""); }

TEST_F(DamagedParquet, FilesThatAreCutOffAreRefused) {
  for (size_t bytes = 0; bytes < whole_.size(); bytes += bytes < 16 ? 1 : 97) {
    const std::string error = error_of(whole_.substr(0, bytes));
    ASSERT_THAT(error, StartsWith(path_ + ": not a Parquet file that can be read: ")) << bytes;
    ASSERT_EQ(error.find('\n'), std::string::npos) << bytes;
  }
}

TEST_F(DamagedParquet, AnyDamagedByteGivesAnErrorWithTheFileOrWrongValues) {
  std::minstd_rand random(11);
  int errors = 0;
  for (int i = 0; i < 600; ++i) {
    std::string damaged = whole_;
    // A third of the damage is in the footer, which says what the rest is.
    const size_t from = i % 3 == 0 ? whole_.size() * 3 / 4 : 0;
    for (int bytes = i % 2 == 0 ? 1 : 4; bytes > 0; --bytes)
      damaged[from + random() % (whole_.size() - from)] ^= static_cast<char>(1 + random() % 255);
    const std::string error = error_of(damaged);
    if (error.empty()) continue;
    ++errors;
    ASSERT_THAT(error, HasSubstr(path_)) << i;
    ASSERT_EQ(error.find('\n'), std::string::npos) << i;
  }
  EXPECT_GT(errors, 100);
}

TEST(ParquetPlugin, IsNamedWhereItIsNotInstalled) {
  const auto data = open_parquet(kMixedFile, "/nowhere/libserin_parquet.so");
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, Code::kUnsupported);
  EXPECT_THAT(data.error().message,
              StartsWith(kMixedFile + ": Parquet is read with libserin_parquet.so, which is not installed (deploy/README.md"));
  EXPECT_THAT(open_parquet("/nowhere.parquet", kParquetPlugin).error().message, HasSubstr("/nowhere.parquet: No such file"));
}

}  // namespace
}  // namespace serin::datasets
