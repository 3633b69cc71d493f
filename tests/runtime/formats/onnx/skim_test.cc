// Weights are left in the file until they are read to where they stay, and a model reads as if they had not been.

#include "runtime/formats/onnx/skim.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "runtime/formats/onnx/file_image.h"
#include "tests/runtime/formats/onnx/encode.h"

namespace serin::formats {
namespace {

namespace fs = std::filesystem;

class Skim : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "serin_skim_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    values_.resize(100'000);
    std::iota(values_.begin(), values_.end(), 0.f);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path() const { return folder_ / "model.onnx"; }
  void write(const std::string& bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }

  /// A large weight between small ones.
  std::string model() const {
    const auto size = static_cast<int64_t>(values_.size());
    const Encoder graph = Encoder()
                              .message(1, node("Add", "add", {"small", "large"}, {"y"}))
                              .message(5, tensor("small", 1, {1}, raw_bytes<float>({2})))
                              .message(5, tensor("large", 1, {size}, raw_bytes(values_)))
                              .message(5, tensor("last", 1, {1}, raw_bytes<float>({3})))
                              .bytes(2, "main")
                              .message(12, Encoder().bytes(1, "y"));
    return Encoder().number(1, 8).message(7, graph).message(8, Encoder().number(2, 17)).str();
  }

  struct Skimmed {
    std::vector<onnx::Hole> holes;
    std::string image;
  };
  Skimmed skim() const {
    const auto file = InputFile::open(path());
    EXPECT_TRUE(file);
    Skimmed result{{}, std::string(file->size(), '\0')};
    auto holes = onnx::skim(*file, std::as_writable_bytes(std::span(result.image)));
    EXPECT_TRUE(holes);
    if (holes) result.holes = *holes;
    return result;
  }

  fs::path folder_;
  std::vector<float> values_;
};

TEST_F(Skim, LeavesOutTheElementsOfALargeWeightAndNothingElse) {
  const std::string bytes = model();
  write(bytes);
  Skimmed skimmed = skim();
  ASSERT_EQ(skimmed.holes.size(), 1u);
  const auto [begin, end] = skimmed.holes[0];
  EXPECT_EQ(bytes.substr(begin, end - begin), raw_bytes(values_));
  skimmed.image.replace(begin, end - begin, raw_bytes(values_));
  EXPECT_EQ(skimmed.image, bytes);
}

TEST_F(Skim, TheModelHasTheWeight) {
  write(model());
  const auto graph = read_onnx(path());
  ASSERT_TRUE(graph) << graph.error().message;
  for (size_t i = 0; i < graph->value_capacity(); ++i) {
    const auto id = static_cast<graph::ValueId>(i);
    if (graph->value(id).name != "large" || !graph->constant(id)) continue;
    const auto elements = graph->constant(id)->span<float>();
    EXPECT_TRUE(std::ranges::equal(elements, values_));
    return;
  }
  FAIL() << "there is no constant 'large'";
}

TEST_F(Skim, WhatIsCutOffIsReadWhole) {
  const std::string bytes = model();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{7}, size_t{60}, size_t{300'000}}) {
    write(bytes.substr(0, size));
    const Skimmed skimmed = skim();
    EXPECT_TRUE(skimmed.holes.empty()) << size;
    EXPECT_EQ(skimmed.image, bytes.substr(0, size)) << size;
  }
}

TEST_F(Skim, AFileThatShrinksBeforeItsWeightsAreReadIsRefused) {
  write(model());
  auto image = onnx::FileImage::read_model(path(), SIZE_MAX);
  ASSERT_TRUE(image) << image.error().message;
  const size_t begin = skim().holes.at(0).begin;
  fs::resize_file(path(), 1000);
  const auto window = image->left_out(image->bytes().subspan(begin, 4000));
  ASSERT_TRUE(window);
  std::vector<std::byte> elements(4000);
  const Status read = window->read(elements);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kUnavailable);
  EXPECT_NE(read.error().message.find(path()), std::string::npos) << read.error().message;
  ASSERT_FALSE(image->unchanged());
  EXPECT_EQ(image->unchanged().error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace serin::formats
