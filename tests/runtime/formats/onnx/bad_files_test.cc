// tests/data/bad: each file has one flaw, its README says what the answer must name. And files that are no files, or no models (M1, M4).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "runtime/formats/onnx/file_image.h"
#include "runtime/formats/onnx/onnx.h"

namespace serin::formats {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct Row {
  std::string file, row, says;
};

/// The rows of the table in the README that name a .onnx file.
std::vector<Row> table() {
  std::vector<Row> rows;
  std::ifstream readme(SERIN_TEST_DATA "/bad/README.md");
  const std::regex pattern(R"(\| (\S+\.onnx) \| (\S+) \| (.*) \|)");
  std::smatch match;
  for (std::string line; std::getline(readme, line);)
    if (std::regex_match(line, match, pattern)) rows.push_back({match[1], match[2], match[3]});
  return rows;
}

std::vector<std::string> quoted(const std::string& text) {
  std::vector<std::string> words;
  const std::regex pattern("`([^`]*)`");
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) words.push_back((*i)[1]);
  return words;
}

class BadFile : public ::testing::TestWithParam<Row> {};

TEST_P(BadFile, IsRefusedByName) {
  const auto graph = read_onnx(std::string(SERIN_TEST_DATA "/bad/") + GetParam().file);
  if (GetParam().says.starts_with("loads;")) {  // the flaw is in the data of a run
    EXPECT_TRUE(graph) << graph.error().message;
    return;
  }
  ASSERT_FALSE(graph) << "it was read, but " << GetParam().says;
  EXPECT_THAT(graph.error().message, ::testing::StartsWith(GetParam().file));
  for (const std::string& word : quoted(GetParam().says)) EXPECT_THAT(graph.error().message, HasSubstr(word)) << GetParam().says;
  EXPECT_NE(graph.error().code, Code::kInternal) << graph.error().message;
}

INSTANTIATE_TEST_SUITE_P(Readme, BadFile, ::testing::ValuesIn(table()),
                         [](const auto& row) { return row.param.row + "_" + row.param.file.substr(0, row.param.file.find('.')); });

/// A file of these bytes, removed at the end.
class BadPath : public ::testing::Test {
 protected:
  BadPath() : folder_(fs::path(::testing::TempDir()) / ("onnx_bad_path_" + std::to_string(::getpid()))) { fs::create_directories(folder_); }
  ~BadPath() override { fs::remove_all(folder_); }

  Error error(const std::string& name) {
    const auto graph = read_onnx(folder_ / name);
    return graph ? Error{Code::kInternal, "it was read"} : graph.error();
  }
  std::string says(std::string_view bytes) {
    std::ofstream(folder_ / "model.onnx", std::ios::binary) << bytes;
    return error("model.onnx").message;
  }

  fs::path folder_;
};

TEST_F(BadPath, M1NotAFile) {
  EXPECT_EQ(error("absent.onnx").code, Code::kNotFound);

  fs::create_directory(folder_ / "folder.onnx");
  EXPECT_THAT(error("folder.onnx").message, HasSubstr("is a directory"));

  ASSERT_EQ(::mkfifo((folder_ / "fifo.onnx").c_str(), 0600), 0);
  EXPECT_THAT(error("fifo.onnx").message, HasSubstr("is a FIFO"));  // and does not wait for a writer

  fs::create_symlink("/dev/zero", folder_ / "device.onnx");
  EXPECT_THAT(error("device.onnx").message, HasSubstr("is a device"));

  fs::create_symlink("loop.onnx", folder_ / "loop.onnx");
  EXPECT_EQ(error("loop.onnx").code, Code::kInvalidArgument);
}

TEST_F(BadPath, M1Unreadable) {
  says("x");
  fs::permissions(folder_ / "model.onnx", fs::perms::none);
  const auto read_as_nobody = [&] {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return 2;  // root reads everything
    return error("model.onnx").code == Code::kPermissionDenied ? 0 : 1;
  };
  EXPECT_EXIT(::_exit(read_as_nobody()), ::testing::ExitedWithCode(0), "");
}

TEST_F(BadPath, M1EmptyAndOneByte) {
  EXPECT_THAT(says(""), HasSubstr("an empty file"));
  EXPECT_THAT(says("\x08"), HasSubstr("not an ONNX model"));
}

TEST_F(BadPath, M1WrittenToWhileItIsRead) {
  says("0123456789");
  const auto file = InputFile::open(folder_ / "model.onnx");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->unchanged());
  says("01234567890");  // another size: the clock of the file system may not have moved
  ASSERT_FALSE(file->unchanged());
  EXPECT_EQ(file->unchanged().error().code, Code::kUnavailable);
}

TEST_F(BadPath, M1CutWhileItIsRead) {
  says("0123456789");
  const auto file = InputFile::open(folder_ / "model.onnx");
  ASSERT_TRUE(file) << file.error().message;
  fs::resize_file(folder_ / "model.onnx", 4);
  std::byte bytes[10];
  const auto status = file->read(0, bytes);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("ends at byte 4, 6 more are expected"));
}

TEST_F(BadPath, M1OverTheLimit) {
  says("0123456789");
  const auto graph = read_onnx(folder_ / "model.onnx", {}, {.file_bytes = 9});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, Code::kTooLarge);
}

TEST_F(BadPath, M4SaysWhatItIs) {
  using namespace std::string_literals;
  EXPECT_THAT(says("<!DOCTYPE html>\n<html><body>Sign in</body></html>"), HasSubstr("an HTML page"));
  EXPECT_THAT(says("version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 4\n"), HasSubstr("Git LFS"));
  EXPECT_THAT(says("PK\x03\x04\x14\0\0\0archive/data.pkl"s), HasSubstr("torch.onnx.export"));  // as files of that name are told
  EXPECT_THAT(says("PK\x03\x04\x14\0\0\0metadata.json"s), HasSubstr("Keras"));
  EXPECT_THAT(says("PK\x03\x04\x14\0\0\0something"s), HasSubstr("a zip archive"));
  EXPECT_THAT(says("\x80\x02}q\0."s), HasSubstr("pickle"));
  EXPECT_THAT(says("\x89HDF\r\n\x1a\n\0\0\0\0"s), HasSubstr("HDF5"));
  EXPECT_THAT(says("\x08\0\0\0\0\0\0\0{\"a\":{}}rest"s), HasSubstr("safetensors"));
  EXPECT_THAT(says("GGUF\x03\0\0\0"s), HasSubstr("GGUF"));
  EXPECT_THAT(says("ftrt\0\0\0\0"s), HasSubstr("TensorRT"));
  EXPECT_THAT(says("\x1c\0\0\0TFL3\0\0"s), HasSubstr("TensorFlow Lite"));
  EXPECT_THAT(says("\x1f\x8b\x08\0"s), HasSubstr("gzip"));
  EXPECT_THAT(says("{\"base_code\": {}}"), HasSubstr("JSON"));
  EXPECT_THAT(says("404: Not Found\n"), HasSubstr("'404: Not Found'"));
  EXPECT_THAT(says("  \n\n"), HasSubstr("blanks"));
}

}  // namespace
}  // namespace serin::formats
