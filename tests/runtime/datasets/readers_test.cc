// Each kind of data: what is read, what is refused and how the message names the place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "runtime/base/file.h"
#include "runtime/datasets/convert.h"
#include "runtime/datasets/dataset.h"
#include "runtime/datasets/npz_archive.h"
#include "runtime/datasets/open.h"

namespace serin::datasets {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Readers : public ::testing::Test {
 protected:
  Readers() : folder_(fs::path(::testing::TempDir()) / ("datasets_" + std::to_string(::getpid()))) { fs::create_directories(folder_); }
  ~Readers() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view text) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  std::string why_not(const std::string& name, std::string_view text) {
    const auto data = open(write(name, text));
    return data ? "" : data.error().message;
  }
  fs::path folder_;
};

// ---- .npz ----

const std::string kEvalFile = std::string(SERIN_MODELS) + "/digits/eval.npz";

Result<std::vector<NpzArray>> arrays_of(const std::string& path) {
  SERIN_TRY(std::shared_ptr<const StoredFile> file, StoredFile::open(path));
  return find_npz_arrays(file);
}

TEST(Npz, ReadsWhatNumPyWrote) {
  const auto arrays = arrays_of(kEvalFile);
  ASSERT_TRUE(arrays) << arrays.error().message;
  const auto array = [&](std::string_view name) { return *std::ranges::find(*arrays, name, &NpzArray::name); };
  EXPECT_EQ(array("pixels").shape, (Shape{540, 64}));
  EXPECT_EQ(array("pixels").dtype, DType::kFloat32);
  EXPECT_EQ(array("label").shape, (Shape{540}));
}

TEST_F(Readers, RefuseDamagedArchives) {
  const std::string whole = read_file(kEvalFile, size_t{1} << 30).value();
  const auto read_npz = [&](std::string_view bytes) { return arrays_of(write("changed.npz", bytes)); };
  for (size_t length = 0; length < whole.size(); length += 997) EXPECT_FALSE(read_npz(std::string_view(whole).substr(0, length)));
  const size_t directory = whole.find("PK\x01\x02");
  for (size_t at = directory; at < whole.size(); ++at) {  // whatever byte of the directory is wrong: an error or the arrays, nothing else
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xFF);
    (void)read_npz(damaged).has_value();
  }
  std::string other = whole;
  other[directory + 10] = 8;  // deflated, which it is not
  EXPECT_THAT(read_npz(other).error().message, HasSubstr("it is smaller than the archive says"));
  other[directory + 10] = 12;
  EXPECT_THAT(read_npz(other).error().message, HasSubstr("compressed with method 12; write it with numpy.savez"));
}

/// The texts of a block of one column; a fault is its message.
std::vector<std::string> texts(const Dataset& data, std::string_view column, int64_t first, int64_t count) {
  const auto rows = data.read(first, count, std::array{*data.column(column)});
  std::vector<std::string> found;
  for (size_t i = 0; i < rows->count(); ++i) {
    if (rows->faults[i]) {
      found.push_back("fault: " + rows->faults[i]->message);
      continue;
    }
    const auto text = text_of(rows->cell(i, 0));
    found.push_back(text ? *text : "no text: " + text.error().message);
  }
  return found;
}

TEST_F(Readers, CsvQuotesBlankLinesAndLineEnds) {
  const auto data = *open(write("a.csv", "\xEF\xBB\xBFid,\"the text\"\r\n1,\"a, \"\"b\"\"\nc\"\r\n\r\n2,plain\r\n3,\n"));
  EXPECT_THAT(data->columns(), ElementsAre("id", "the text"));
  ASSERT_EQ(data->rows(), 3);
  EXPECT_THAT(texts(*data, "the text", 0, 3), ElementsAre("a, \"b\"\nc", "plain", "no text: the value is missing"));
  EXPECT_THAT(texts(*data, "id", 1, 2), ElementsAre("2", "3"));
  EXPECT_THAT(data->place(1), HasSubstr("a.csv, row 1 (line 5)"));
}

TEST_F(Readers, CsvFaultsAreOfTheirRows) {
  const auto data = *open(write("a.csv", "a,b\n1,2\n3\n4,x\"y\n\"5\"6,7\n8,9\n"));
  ASSERT_EQ(data->rows(), 5);
  const auto found = texts(*data, "a", 0, 5);
  EXPECT_EQ(found[0], "1");
  EXPECT_EQ(found[4], "8");
  EXPECT_THAT(found[3], HasSubstr("fault: field 1 does not end where its quotation ends"));
  EXPECT_EQ(found[1], "fault: has 1 fields, the header has 2");
  EXPECT_THAT(found[2], HasSubstr("fault: field 2 has a quotation mark inside"));
}

TEST_F(Readers, CsvRefusals) {
  EXPECT_THAT(why_not("a.csv", "a,a\n1,2\n"), HasSubstr("the header names column 'a' twice"));
  EXPECT_THAT(why_not("a.csv", "a,\n1,2\n"), HasSubstr("column 2 of the header has no name"));
  EXPECT_THAT(why_not("a.csv", "a,b\n"), HasSubstr("no rows below a header"));
  EXPECT_THAT(why_not("a.csv", "a,b\n1,2\n3,\"4\n"), HasSubstr("line 3: a quotation mark is not closed"));
}

TEST_F(Readers, ColumnsByAList) {
  const auto data = *open(write("a.tsv", "p0\tp1\tlabel\n1\t2\tx\n"));
  EXPECT_THAT(*data->columns_of("p*"), ElementsAre(0, 1));
  EXPECT_THAT(*data->columns_of("label,p0"), ElementsAre(2, 0));
  EXPECT_THAT(data->columns_of("labl").error().message, HasSubstr("no column 'labl'; did you mean 'label'?; columns: p0, p1, label"));
  EXPECT_THAT(data->columns_of("q*").error().message, HasSubstr("no column matches 'q*'"));
}

TEST_F(Readers, JsonlValuesAndFaults) {
  const auto data = *open(write("a.jsonl",
                                "{\"x\": [1, 2], \"t\": \"a\\u00e9\\n\", \"n\": null}\n"
                                "{\"t\": \"b\"}\n"
                                "  {\"x\": 3, \"t\": 4.5 , \"new\": 1}\n"
                                "{\"x\": 3, \"t\": }\n"
                                "[1]\n"
                                "{\"t\": \"c\"} {}\n"));
  EXPECT_THAT(data->columns(), ElementsAre("x", "t", "n"));
  const auto found = texts(*data, "t", 0, 6);
  EXPECT_EQ(found[0], "a\xC3\xA9\n");
  EXPECT_EQ(found[1], "b");
  EXPECT_EQ(found[2], "4.5");
  for (size_t i = 3; i < 6; ++i) EXPECT_THAT(found[i], HasSubstr("fault: not a JSON object")) << i;
  EXPECT_THAT(texts(*data, "x", 0, 2), ElementsAre("no text: '[1, 2]' is no text", "no text: the value is missing"));
  EXPECT_THAT(why_not("b.jsonl", "{\"a\": 1, \"a\": 2}\n"), HasSubstr("row 0 (line 1): key 'a' is there twice"));
  EXPECT_THAT(why_not("b.jsonl", "\n\n"), HasSubstr("has no rows"));
}

TEST_F(Readers, ManyRowsComeOutWholeAtAnyBlock) {
  std::string text = "n,quoted\n";
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i) + ",\"" + std::string(i % 23, 'x') + "\n\"\n";  // over several reads
  const auto data = *open(write("a.csv", text));
  ASSERT_EQ(data->rows(), 200'000);
  for (const int64_t first : {0, 99'999, 199'995}) EXPECT_EQ(texts(*data, "n", first, 5)[4], std::to_string(first + 4));
}

TEST_F(Readers, NpzOfTheDigits) {
  const auto data = *open(SERIN_MODELS "/digits/eval.npz");
  EXPECT_THAT(data->columns(), ElementsAre("pixels", "label"));
  ASSERT_EQ(data->rows(), 540);
  const auto rows = *data->read(538, 2, std::array<size_t, 2>{0, 1});
  EXPECT_EQ(describe(rows.cell(1, 0)), "a tensor f32[64]");
  EXPECT_GE(*number_of(rows.cell(1, 1)), 0);
}

TEST_F(Readers, DamagedArchivesAreRefusedAtEveryByte) {
  std::ifstream file(SERIN_MODELS "/digits/eval.npz", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  for (const size_t kept : {size_t{0}, size_t{10}, whole.size() / 2, whole.size() - 1})
    EXPECT_FALSE(open(write("a.npz", whole.substr(0, kept))));
  // A wrong byte in the directory is an error or is of no consequence; never a crash.
  for (size_t at = whole.size() - 200; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xFF);
    const auto data = open(write("a.npz", damaged));
    if (!data) continue;
    EXPECT_TRUE((*data)->read(0, (*data)->rows(), std::array<size_t, 1>{0}));
  }
}

TEST_F(Readers, FolderOfClasses) {
  write("set/b/2.png", "two");
  write("set/b/1.JPG", "one");
  write("set/a/deep/x.png", "x");
  write("set/a/notes.txt", "no picture");
  const auto data = *open((folder_ / "set").string());
  EXPECT_THAT(texts(*data, "path", 0, 3), ElementsAre("a/deep/x.png", "b/1.JPG", "b/2.png"));
  EXPECT_THAT(texts(*data, "label", 0, 3), ElementsAre("a", "b", "b"));
  EXPECT_THAT(texts(*data, "class", 0, 3), ElementsAre("0", "1", "1"));
  EXPECT_THAT(texts(*data, "image", 1, 2), ElementsAre("one", "two"));
  fs::create_directories(folder_ / "empty");
  EXPECT_THAT(open((folder_ / "empty").string()).error().message, HasSubstr("has no pictures"));
}

TEST_F(Readers, CocoGathersAnnotationsByPicture) {
  write("images/a.png", "bytes of a");
  const auto data = *open(write("instances.json", R"({"categories": [{"id": 3, "name": "cat"}],
    "images": [{"id": 7, "file_name": "a.png"}, {"id": 8, "file_name": "b.png"}],
    "annotations": [{"image_id": 7, "category_id": 3, "bbox": [1, 2, 3.5, 4]}, {"image_id": 7, "category_id": 3, "bbox": [0, 0, 1, 1], "iscrowd": 1}]})"));
  const auto rows = *data->read(0, 2, *data->columns_of("annotations"));
  EXPECT_EQ(rows.cell(0, 0).text, R"([{"bbox":[1,2,3.5,4],"category_id":3,"category":"cat","area":14,"iscrowd":0},)"
                                  R"({"bbox":[0,0,1,1],"category_id":3,"category":"cat","area":1,"iscrowd":1}])");
  EXPECT_EQ(rows.cell(1, 0).text, "[]");
  EXPECT_EQ(texts(*data, "image", 0, 1)[0], "bytes of a");
  EXPECT_THAT(texts(*data, "image", 1, 1)[0], HasSubstr("b.png"));  // there is no such file
}

TEST_F(Readers, CocoRefusals) {
  EXPECT_THAT(why_not("a.json", "[1]"), HasSubstr("needs the lists 'images', 'annotations' and 'categories'"));
  EXPECT_THAT(why_not("a.json", R"({"images": [{"id": 1}], "annotations": [], "categories": []})"),
              HasSubstr("images[0]: needs an integer 'id'"));
  const std::string images = R"("images": [{"id": 1, "file_name": "a"}], "categories": [{"id": 1, "name": "c"}])";
  EXPECT_THAT(why_not("a.json", "{" + images + R"(, "annotations": [{"image_id": 1, "category_id": 1}]})"),
              HasSubstr("annotations[0]: needs 'bbox'"));
  EXPECT_THAT(why_not("a.json", "{" + images + R"(, "annotations": [{"image_id": 2, "category_id": 1, "bbox": [1,1,1,1]}]})"),
              HasSubstr("image 2 is none of 'images'"));
}

TEST_F(Readers, UnknownKindsAreNamed) {
  EXPECT_THAT(why_not("a.xlsx", ""), HasSubstr("'.xlsx' is no known kind of data"));
  EXPECT_THAT(open((folder_ / "nowhere.csv").string()).error().message, HasSubstr("no such file or folder"));
}

}  // namespace
}  // namespace serin::datasets
