// Files that h5py wrote, in both layouts, and the same with each part damaged. tests/data/keras has them; tests/formats/keras/export.py says how they were made.

#include "runtime/formats/keras/hdf5.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "tests/runtime/formats/torch/archive.h"

namespace serin::formats::keras {
namespace {

using testing::HasSubstr;
using torch_test::TemporaryFile;

std::string bytes_of(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(std::string(SERIN_TEST_DATA "/keras/") + name, std::ios::binary).rdbuf();
  return text.str();
}

Result<Hdf5> open(const TemporaryFile& file) {
  SERIN_TRY(InputFile input, InputFile::open(file.path()));
  const auto shared = std::make_shared<const InputFile>(std::move(input));
  return Hdf5::open({shared, 0}, shared->size());
}

class Layouts : public testing::TestWithParam<const char*> {};

TEST_P(Layouts, TensorsAreFoundByPath) {
  const TemporaryFile file(bytes_of(GetParam()), "weights.h5");
  const auto weights = open(file);
  ASSERT_TRUE(weights) << weights.error().message;
  const auto kernel = weights->constant("layers/dense/vars/0");
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ((*kernel)->dtype, DType::kFloat32);
  EXPECT_EQ((*kernel)->shape, (Shape{2, 3}));
  EXPECT_THAT((*kernel)->span<float>(), testing::ElementsAre(0, 1, 2, 3, 4, 5));
  const int layers = GetParam() == std::string("links.h5") ? 60 : 12;  // more than a header or a node of a tree holds
  for (int i = 1; i < layers; ++i) {
    const auto number = weights->constant(fmt::format("layers/dense_{}/vars/0", i));
    ASSERT_TRUE(number) << number.error().message;
    EXPECT_EQ((*number)->span<int64_t>()[0], i);
  }
  EXPECT_EQ(weights->find("layers/half/vars/0")->dtype, DType::kFloat16);
  EXPECT_EQ(weights->find("layers/rounded/vars/0")->dtype, DType::kBFloat16);
  EXPECT_TRUE(weights->has_below("layers/dense/"));
  EXPECT_FALSE(weights->has_below("layers/none/"));
  EXPECT_EQ(weights->find("layers/dense"), nullptr);
  EXPECT_EQ(weights->constant("layers/none/vars/0").error().message, "weight 'layers/none/vars/0' is missing");
  EXPECT_THAT(weights->constant("layers/text/vars/0").error().message, HasSubstr("has a type that is no number"));
}

TEST_P(Layouts, M2_AFileThatIsCutOffIsRefusedOrItsWeightsAre) {
  const std::string whole = bytes_of(GetParam());
  const TemporaryFile file(whole, "weights.h5");
  for (size_t size = 0; size < whole.size(); size += 1 + whole.size() / 300) {
    file.write(whole.substr(0, size));
    const auto weights = open(file);
    if (!weights) continue;
    for (const char* const path : {"layers/dense/vars/0", "layers/dense_11/vars/0"}) (void)weights->constant(path);
  }
}

TEST_P(Layouts, M2_NoFlippedByteEndsTheProcess) {
  const std::string whole = bytes_of(GetParam());
  const TemporaryFile file(whole, "weights.h5");
  constexpr char kFlips[] = {'\x01', '\x80', '\xff'};
  for (size_t at = 0; at < whole.size(); at += at < 1024 ? 1 : 29) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ kFlips[at % 3]);
    file.write(damaged);
    const auto weights = open(file);
    if (weights) (void)weights->constant("layers/dense/vars/0");
  }
}

INSTANTIATE_TEST_SUITE_P(Hdf5, Layouts, testing::Values("tables.h5", "links.h5"),
                         [](const auto& each) { return std::string(each.param).substr(0, std::string(each.param).find('.')); });

TEST(Hdf5, OtherFilesSayWhatIsMissing) {
  EXPECT_THAT(open(TemporaryFile("", "weights.h5")).error().message, HasSubstr("does not begin as one"));
  EXPECT_THAT(open(TemporaryFile("GIF89a", "weights.h5")).error().message, HasSubstr("does not begin as one"));
  EXPECT_THAT(open(TemporaryFile("\x89HDF\r\n\x1a\n\x09", "weights.h5")).error().message, HasSubstr("superblock of version 9"));
}

}  // namespace
}  // namespace serin::formats::keras
