// Every model of tests/data and models/ is read; what comes out is what was exported.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/formats/onnx/onnx.h"

namespace serin::formats {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> model_files() {
  std::vector<std::string> files;
  for (const char* folder : {SERIN_TEST_DATA, SERIN_MODELS})
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.path().filename() == "model.onnx") files.push_back(entry.path());
  return files;
}

TEST(Fixtures, AllModelsAreRead) {
  const auto files = model_files();
  EXPECT_GE(files.size(), 10U);
  for (const std::string& file : files) {
    const auto graph = read_onnx(file);
    EXPECT_TRUE(graph) << file << ": " << graph.error().message;
  }
}

TEST(Fixtures, TheStoredTensorsAreOfTheTypesOfTheInputs) {
  for (const std::string& file : model_files()) {
    const auto graph = read_onnx(file);
    if (!graph) continue;  // the test above says so
    const fs::path data_set = fs::path(file).parent_path() / "test_data_set_0";
    for (size_t i = 0; fs::exists(data_set) && i < graph->inputs().size(); ++i) {
      const auto tensor = read_tensor_file(data_set / ("input_" + std::to_string(i) + ".pb"));
      ASSERT_TRUE(tensor) << tensor.error().message;
      const graph::Type& type = graph->value(graph->inputs()[i]).type;
      EXPECT_EQ((*tensor)->dtype, type.dtype) << file << " input " << i;
      EXPECT_EQ((*tensor)->shape.rank(), type.shape->size()) << file << " input " << i;
    }
  }
}

TEST(Fixtures, DigitsHasTheInputAndOutputOfItsReadme) {
  const auto graph = read_onnx(SERIN_MODELS "/digits/1/model.onnx");
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_EQ(graph->inputs().size(), 1U);
  EXPECT_EQ(print(graph->value(graph->inputs()[0]).type), "f32[batch,64]");
  ASSERT_EQ(graph->outputs().size(), 1U);
  EXPECT_EQ(print(graph->value(graph->outputs()[0]).type), "f32[batch,10]");
}

TEST(Fixtures, BranchesReadWhatIsAroundThemThroughOperands) {
  const auto graph = read_onnx(SERIN_TEST_DATA "/control_flow/model.onnx");
  ASSERT_TRUE(graph) << graph.error().message;
  const auto ifs = graph->nodes(graph::Op::kIf);
  ASSERT_EQ(ifs.size(), 1U);
  const graph::Node& node = graph->node(ifs[0]);
  ASSERT_EQ(node.bodies.size(), 2U);
  for (const auto& body : node.bodies) EXPECT_EQ(body->inputs().size() + 1, node.inputs.size());
}

TEST(Fixtures, AFileOverwrittenAfterwardsChangesNothing) {
  const fs::path copy = fs::path(::testing::TempDir()) / "overwritten.onnx";
  fs::copy_file(SERIN_TEST_DATA "/conv_bn/model.onnx", copy, fs::copy_options::overwrite_existing);
  const auto graph = read_onnx(copy);
  ASSERT_TRUE(graph) << graph.error().message;
  const auto sum = [&] {
    double total = 0;
    for (size_t id = 0; id < graph->value_capacity(); ++id)
      if (const auto constant = graph->constant(static_cast<graph::ValueId>(id)); constant && constant->dtype == DType::kFloat32)
        for (const float x : constant->span<float>()) total += x;
    return total;
  };
  const double before = sum();
  std::ofstream(copy, std::ios::in | std::ios::out) << std::string(fs::file_size(copy), 'x');
  EXPECT_EQ(sum(), before);
  fs::resize_file(copy, 0);
  EXPECT_EQ(sum(), before);
}

}  // namespace
}  // namespace serin::formats
