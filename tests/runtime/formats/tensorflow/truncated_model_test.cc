// M2: a model that ends early, or with a changed bit, is refused or read, and nothing else.

#include "runtime/formats/tensorflow/savedmodel.h"

#include <gtest/gtest.h>

#include "tests/runtime/formats/tensorflow/saved_model.h"

namespace serin::formats::tf {
namespace {

using namespace test;

Model model_with_everything() {
  Model model = model_with_variable();
  model.nodes.push_back({"call", "PartitionedCall", {"y"}, {{"f", attr_function("inner")}}});
  model.nodes.push_back(floats("k", {4, 2}, std::vector<float>(8, 0.5F)));
  model.nodes.push_back({"z", "MatMul", {"call", "k"}, {}});
  model.functions = {{"inner", {"p"}, {{"n", "Relu", {"p"}, {}}}, {{"r", "n:activations:0"}}}};
  model.outputs = {{"z", "z:0", 1, {-1, 2}}};
  return model;
}

void expect_no_crash(const Folder& folder, std::string_view program) {
  folder.write("saved_model.pb", program);
  const auto graph = formats::read_saved_model(folder.file("saved_model.pb"));
  EXPECT_TRUE(graph || graph.error().code != Code::kInternal);
}

TEST(TruncatedSavedModel, AtEachByte) {
  const Model model = model_with_everything();
  ASSERT_TRUE(read(model)) << error_of(model);
  const Folder folder;
  for (const auto& [name, bytes] : model.files) folder.write(name, bytes);
  const std::string program = model.proto();
  for (size_t size = 0; size < program.size(); ++size) {
    folder.write("saved_model.pb", std::string_view(program).substr(0, size));
    EXPECT_FALSE(formats::read_saved_model(folder.file("saved_model.pb"))) << size;
  }
}

TEST(TruncatedSavedModel, WithOneBitChanged) {
  const Model model = model_with_everything();
  const Folder folder;
  for (const auto& [name, bytes] : model.files) folder.write(name, bytes);
  const std::string program = model.proto();
  for (size_t bit = 0; bit < 8 * program.size(); bit += 3) {
    std::string changed = program;
    changed[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    expect_no_crash(folder, changed);
  }
}

}  // namespace
}  // namespace serin::formats::tf
