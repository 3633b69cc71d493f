// Parameters: of one file, of a file each, missing, in another order, of another program, or no parameters at all (M1, M4, M7, M8, M14).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/formats/paddle/params.h"
#include "runtime/formats/paddle/program_desc.h"
#include "tests/runtime/formats/paddle/encode.h"

namespace serin::formats {
namespace {

using ::testing::HasSubstr;

TEST(PaddleParameters, OneFile) {
  for (const auto& [program, name] : {std::pair(small_program(), "m.pdmodel"), std::pair(small_pir(), "m.json")}) {
    const auto graph = read(program, small_parameters(), name);
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_EQ(graph->output_names()[0], name == std::string("m.json") ? "out" : "y");
    EXPECT_EQ(graph::print(graph->value(graph->inputs()[0]).type), "f32[batch,2]");
    EXPECT_EQ(graph::print(graph->value(graph->outputs()[0]).type), "f32[batch,3]");
  }
}

TEST(PaddleParameters, FilesByName) {
  const Folder folder;
  folder.write("__model__", small_program()).write("w", small_parameters());
  ASSERT_TRUE(read_paddle(folder / "__model__"));
  folder.write("__params__", small_parameters());
  ::unlink((folder / "w").c_str());
  EXPECT_TRUE(read_paddle(folder / "__model__"));
}

TEST(PaddleParameters, LevelsOfSequencesAreSkipped) {  // M14: LoD
  EXPECT_TRUE(read(small_program(), stored_tensor(kF32, {2, 3}, raw_bytes<float>({1, 2, 3, 4, 5, 6}), 2)));
}

TEST(PaddleParameters, LargeOnesStayInTheFile) {
  const Folder folder;
  const Dims dims{256, 256};
  const auto vars = std::vector<Encoder>{var("x", {-1, 256}), var("w", dims, true), var("y", {-1, 256})};
  folder.write("m.pdmodel",
               program({block(vars, {feed("x"), op("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"y"}}}), fetch("y")})}));
  folder.write("m.pdiparams", stored_tensor(kF32, dims, std::string(256 * 256 * 4, '\1')));
  auto graph = read_paddle(folder / "m.pdmodel");
  ASSERT_TRUE(graph) << graph.error().message;
  graph::ConstantPtr weight;
  for (size_t i = 0; i < graph->value_capacity(); ++i)
    if (const auto constant = graph->constant(static_cast<graph::ValueId>(i)); constant && constant->bytes() == 256 * 256 * 4)
      weight = constant;
  ASSERT_TRUE(weight);
  EXPECT_FALSE(weight->resident);
  EXPECT_EQ(static_cast<int>(*weight->data()), 1);
  ::usleep(20000);
  folder.write("m.pdiparams", "changed in place");
  EXPECT_THROW(weight->data(), graph::LostConstant);
}

struct BadParameters {
  const char* name;
  std::string bytes, says;
};

class PaddleBadParameters : public ::testing::TestWithParam<BadParameters> {};

TEST_P(PaddleBadParameters, AreRefused) {
  for (const auto& [program, file] : {std::pair(small_program(), "m.pdmodel"), std::pair(small_pir(), "m.json")}) {
    const auto graph = read(program, GetParam().bytes, file);
    ASSERT_FALSE(graph);
    EXPECT_THAT(graph.error().message, HasSubstr(GetParam().says));
    EXPECT_THAT(graph.error().message, HasSubstr("m.pdiparams"));
  }
}

std::string with_version(uint32_t version) {
  std::string bytes = small_parameters();
  std::memcpy(bytes.data(), &version, 4);
  return bytes;
}

std::string with_levels(uint64_t levels) {
  std::string bytes = small_parameters();
  std::memcpy(bytes.data() + 4, &levels, 8);
  return bytes;
}

std::string with_desc_length(int32_t length) {
  std::string bytes = small_parameters();
  std::memcpy(bytes.data() + 16, &length, 4);
  return bytes;
}

const std::string kSix = raw_bytes<float>({1, 2, 3, 4, 5, 6});

INSTANTIATE_TEST_SUITE_P(
    M14, PaddleBadParameters,
    ::testing::Values(BadParameters{"Empty", "", "parameter 'w'"},
                      BadParameters{"TwoTensors", small_parameters() + small_parameters(), "more than the 1 parameters"},
                      BadParameters{"OtherShape", stored_tensor(kF32, {3, 2}, kSix),
                                    "f32[3,2] is stored where the program declares f32[2,3]"},
                      BadParameters{"OtherType", stored_tensor(2, {2, 3}, kSix), "i32[2,3] is stored"},
                      BadParameters{"UnknownType", stored_tensor(99, {2, 3}, kSix), "type number 99"},
                      BadParameters{"NegativeDim", stored_tensor(kF32, {2, -3}, kSix), "shape [2,-3]"},
                      BadParameters{"DimsOverflow", stored_tensor(kF32, {int64_t{1} << 40, int64_t{1} << 40}, kSix),
                                    "shape [1099511627776,1099511627776]"},
                      BadParameters{"DimsOverflowBesideZero", stored_tensor(kF32, {0, int64_t{1} << 40, int64_t{1} << 40}, ""),
                                    "shape [0,1099511627776,1099511627776]"},
                      BadParameters{"Rank13", stored_tensor(kF32, Dims(13, 1), kSix.substr(0, 4)), "shape [1,1,1,1,1,1,1,1,1,1,1,1,1]"},
                      BadParameters{"ElementsMissing", stored_tensor(kF32, {2, 3}, kSix.substr(4)), "24 bytes are needed, 20 are left"},
                      BadParameters{"ElementsClaimed", stored_tensor(kF32, {int64_t{1} << 33}, kSix), "is stored where"},
                      BadParameters{"Version", with_version(7), "a tensor of version 7"},
                      BadParameters{"Levels", with_levels(~uint64_t{0}), "bytes are needed"},
                      BadParameters{"DescNegative", with_desc_length(-1), "a description of -1 bytes"},
                      BadParameters{"DescHuge", with_desc_length(1 << 30), "a description of 1073741824 bytes"},
                      BadParameters{"Pickle", std::string("\x80\x04\x95", 3) + std::string(40, 'x'), "a Python pickle"},
                      BadParameters{"GitLfs", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a Git LFS pointer"},
                      BadParameters{"Html", "<!DOCTYPE html><html><body>404</body></html>", "an HTML page"}),
    [](const auto& row) { return row.param.name; });

TEST(PaddleBadFolder, WithoutParameters) {
  const Folder folder;
  folder.write("m.pdmodel", small_program());
  auto graph = read_paddle(folder / "m.pdmodel");
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, Code::kNotFound);
  EXPECT_THAT(graph.error().message, HasSubstr("its 1 parameters are in 'm.pdiparams', which is not next to it"));
  folder.write("m.pdparams", "pickled");
  graph = read_paddle(folder / "m.pdmodel");
  EXPECT_THAT(graph.error().message, HasSubstr("paddle.jit.save(layer, 'NAME', input_spec=[...])"));
  ::mkdir((folder / "m.pdiparams").c_str(), 0755);
  EXPECT_EQ(read_paddle(folder / "m.pdmodel").error().code, Code::kInvalidArgument);
}

TEST(PaddleBadFolder, CountAndOrder) {
  const auto two = small_program({var("v", {2, 3}, true)});
  EXPECT_THAT(read(two, small_parameters()).error().message, HasSubstr("ends after 1 of 2 parameters: 'w' is missing"));
  const auto other = small_program({var("z", {4}, true)});  // behind w
  const std::string four = stored_tensor(kF32, {4}, std::string(16, '\0'));
  EXPECT_TRUE(read(other, small_parameters() + four));
  EXPECT_THAT(read(other, four + small_parameters()).error().message, HasSubstr("parameter 'w'"));
}

TEST(PaddleBadFolder, NamesOfFilesStayInTheFolder) {  // M8
  for (const char* const name : {"../w", "/etc/passwd", "a/w", "..", "."}) {
    const Folder folder;
    folder.write("__model__", program({block({var("x", {-1, 2}), var(name, {2, 3}, true), var("y", {-1, 3})},
                                             {feed("x"), op("matmul_v2", {{"X", {"x"}}, {"Y", {name}}}, {{"Out", {"y"}}}), fetch("y")})}));
    const auto graph = read_paddle(folder / "__model__");
    ASSERT_FALSE(graph) << name;
    EXPECT_EQ(graph.error().code, Code::kPermissionDenied) << graph.error().message;
  }
}

TEST(PaddleBadFolder, LinksAndSpecialFiles) {  // M1, M8
  const Folder folder;
  folder.write("__model__", small_program()).write("real", small_parameters());
  ASSERT_EQ(::symlink((folder / "real").c_str(), (folder / "w").c_str()), 0);
  EXPECT_EQ(read_paddle(folder / "__model__").error().code, Code::kPermissionDenied);
  ::unlink((folder / "w").c_str());
  EXPECT_EQ(read_paddle(folder / "__model__").error().code, Code::kNotFound);
  ASSERT_EQ(::link((folder / "real").c_str(), (folder / "w").c_str()), 0);
  EXPECT_EQ(read_paddle(folder / "__model__").error().code, Code::kPermissionDenied) << "a second name of a file";
  ::unlink((folder / "w").c_str());
  ASSERT_EQ(::mkfifo((folder / "w").c_str(), 0600), 0);
  EXPECT_EQ(read_paddle(folder / "__model__").error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace serin::formats
