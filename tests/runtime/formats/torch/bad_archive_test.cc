// Archives with a flaw, and files that are none (M1, M2, M4, M15).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>

#include "tests/runtime/formats/torch/archive.h"

namespace serin::formats::torch_test {
namespace {

using ::testing::HasSubstr;

std::vector<ZipFile> good() { return files_of(TestProgram{{kAdd}}.json()); }

std::string error_of(const Result<graph::Graph>& graph) { return graph ? "it was read" : graph.error().message; }

TEST(TorchArchive, IsRead) {
  const auto graph = read(good());
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(print(*graph), HasSubstr("y = Add(x, layer.w[2,3])"));
}

TEST(TorchArchive, MayHaveA64BitDirectory) {
  const std::string whole = zip64(good());
  const TemporaryFile file(whole);
  const auto graph = read_torch(file.path());
  ASSERT_TRUE(graph) << graph.error().message;
  for (size_t at = whole.size() - 400; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    file.write(bytes);
    (void)read_torch(file.path());
  }
}

TEST(TorchArchive, M1_RefusesWhatIsNoRegularFile) {
  const TemporaryFile file("");
  EXPECT_THAT(error_of(read_torch(file.path())), HasSubstr("model.pt2: is an empty file"));
  EXPECT_THAT(error_of(read_torch(file.folder())), HasSubstr("is a directory"));
  EXPECT_EQ(read_torch(file.folder() + "/none.pt2").error().code, Code::kNotFound);
  const std::string fifo = file.folder() + "/fifo.pt2", loop = file.folder() + "/loop.pt2";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_symlink(loop, loop);
  EXPECT_THAT(error_of(read_torch(fifo)), HasSubstr("is a FIFO"));
  EXPECT_FALSE(read_torch(loop));
}

TEST(TorchArchive, M2_RefusesEveryTruncation) {
  const std::string whole = zip(good());
  const TemporaryFile file(whole);
  for (size_t size = 0; size < whole.size(); size += size < 200 || size + 200 > whole.size() ? 1 : 7) {
    file.write(whole.substr(0, size));
    ASSERT_FALSE(read_torch(file.path())) << size << " of " << whole.size() << " bytes were read";
  }
}

TEST(TorchArchive, M2_SurvivesEveryFlippedByte) {
  const std::string whole = zip(good());
  const TemporaryFile file(whole);
  size_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    file.write(bytes);
    const auto graph = read_torch(file.path());
    refused += graph ? 0 : 1;
    if (!graph) {
      EXPECT_NE(graph.error().code, Code::kInternal) << graph.error().message;
    }
  }
  EXPECT_GT(refused, whole.size() * 3 / 4) << "checksums cover the program";
}

TEST(TorchArchive, M4_NamesWhatElseItIs) {
  const auto says = [](const std::string& bytes) {
    const TemporaryFile file(bytes);
    return error_of(read_torch(file.path()));
  };
  EXPECT_THAT(says("<!DOCTYPE html><html><body>Log in</body></html>"), HasSubstr("HTML"));
  EXPECT_THAT(says("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n"), HasSubstr("Git LFS"));
  EXPECT_THAT(says(std::string("\x80\x04\x95", 3) + std::string(40, 'x')), HasSubstr("pickle"));
  EXPECT_THAT(says(zip({{"m/data.pkl", "x"}, {"m/code/__torch__.py", "x"}})), HasSubstr("TorchScript"));
  EXPECT_THAT(says(zip({{"m/data.pkl", "x"}, {"m/data/0", "x"}})), HasSubstr("torch.save"));
  EXPECT_THAT(says(zip({{"serialized_exported_program.json", "{}"}})), HasSubstr("torch 2.7 or before"));
  EXPECT_THAT(says(zip({{"hello.txt", "x"}})), HasSubstr("no 'archive_format'"));
  EXPECT_THAT(says(zip({{"m/archive_format", "pt3"}, {"m/byteorder", "little"}})), HasSubstr("'pt3'"));
  EXPECT_THAT(says(zip({{"m/archive_format", "pt2"}, {"m/byteorder", "big"}})), HasSubstr("'big'"));
  EXPECT_THAT(says(zip({{"m/archive_format", "pt2"}, {"m/byteorder", "little"}, {"m/data/aotinductor/model/x.so", ""}})),
              HasSubstr("AOTInductor"));
  EXPECT_THAT(says(zip({{"m/archive_format", "pt2"}, {"m/byteorder", "little"}})), HasSubstr("has 0 programs"));
}

struct Flaw {
  const char* name;
  std::function<void(std::vector<ZipFile>&)> make;
  const char* says;
};

class BadZip : public ::testing::TestWithParam<Flaw> {};

TEST_P(BadZip, M15_IsRefused) {
  std::vector<ZipFile> files = good();
  GetParam().make(files);
  EXPECT_THAT(error_of(read(files)), HasSubstr(GetParam().says));
}

const Flaw kFlaws[] = {
    {"parent", [](auto& files) { files[3].name = "m/../../etc/passwd"; }, "leads out of the archive"},
    {"absolute", [](auto& files) { files[3].name = "/etc/passwd"; }, "leads out of the archive"},
    {"backslash", [](auto& files) { files[3].name = "m\\..\\x"; }, "leads out of the archive"},
    {"nul", [](auto& files) { files[3].name = std::string("m/a\0b", 5); }, "leads out of the archive"},
    {"link", [](auto& files) { files[3].mode = 0120777; }, "is a link"},
    {"twice", [](auto& files) { files.push_back(files[2]); }, "'m/models/model.json' occurs twice"},
    {"compressed", [](auto& files) { files[2].method = 8; }, "'m/models/model.json' is compressed"},
    {"encrypted", [](auto& files) { files[2].flags = 1; }, "is encrypted"},
    {"overlap", [](auto& files) { files[4].offset = 0; }, "has a header that contradicts the directory"},
    {"longer", [](auto& files) { files[5].size = 100'000'000; }, "lies outside the file"},
    {"shared", [](auto& files) { files[2].size = static_cast<uint32_t>(files[2].content.size()) + 60; }, "two entries share bytes"},
    {"checksum", [](auto& files) { files[2].checksum = 7; }, "does not have its checksum"},
    {"far", [](auto& files) { files[2].offset = 0xFFFFFFF0; }, "lies outside the file"},
};
INSTANTIATE_TEST_SUITE_P(All, BadZip, ::testing::ValuesIn(kFlaws), [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace serin::formats::torch_test
