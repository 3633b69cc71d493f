// Archives of Keras whose parts contradict each other. Models as Keras writes them are in tests/formats/keras.

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "runtime/formats/keras/keras.h"
#include "runtime/formats/keras/names.h"
#include "tests/runtime/formats/torch/archive.h"

namespace serin::formats {
namespace {

using keras::snake_case;
using testing::HasSubstr;
using torch_test::TemporaryFile;

std::string h5() {
  std::ostringstream text;
  text << std::ifstream(SERIN_TEST_DATA "/keras/tables.h5", std::ios::binary).rdbuf();
  return text.str();
}

std::string archive(const std::string& config) {
  return torch_test::zip({{"metadata.json", R"({"keras_version": "3.10.0"})"}, {"config.json", config}, {"model.weights.h5", h5()}});
}

/// A layer with its calls, and the model around layers.
std::string layer(const std::string& name, const std::string& class_name, const std::string& settings, const std::string& calls) {
  return fmt::format(
      R"({{"module": "keras.layers", "class_name": "{}", "config": {{"name": "{}"{}}}, "name": "{}", "inbound_nodes": [{}]}})", class_name,
      name, settings, name, calls);
}
std::string call(const std::string& place) {
  return R"({"args": [{"class_name": "__keras_tensor__", "config": {"shape": [null, 2], "dtype": "float32", "keras_history": [)" + place +
         R"(]}}], "kwargs": {}})";
}
std::string input() { return layer("x", "InputLayer", R"(, "batch_shape": [null, 2], "dtype": "float32")", ""); }
std::string dense(const std::string& calls, const std::string& more = "") {
  return layer("dense", "Dense", R"(, "units": 3, "activation": "relu", "use_bias": false)" + more, calls);
}
std::string model(const std::string& layers, const std::string& in = R"(["x", 0, 0])", const std::string& out = R"(["dense", 0, 0])") {
  return fmt::format(
      R"({{"module": "keras", "class_name": "Functional", "config": {{"name": "m", "layers": [{}], "input_layers": [{}], "output_layers": [{}]}}}})",
      layers, in, out);
}

std::string error_of(const std::string& config) {
  const TemporaryFile file(archive(config), "model.keras");
  const auto graph = read_keras(file.path());
  return graph ? "" : graph.error().message;
}

TEST(Keras, AModelOfOneLayer) {
  const TemporaryFile file(archive(model(input() + ", " + dense(call(R"("x", 0, 0)")))), "model.keras");
  const auto graph = read_keras(file.path());
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->value(graph->inputs()[0]).name, "x");
  EXPECT_EQ(graph->output_names()[0], "dense");
  EXPECT_EQ(graph::print(graph->value(graph->outputs()[0]).type), "f32[batch,3]");
}

TEST(Keras, FoldersOfWeightsAreNamedAsKerasNamesThem) {
  for (const auto& [class_name, folder] : {std::pair("Dense", "dense"),
                                           {"Conv2D", "conv2d"},
                                           {"Conv2DTranspose", "conv2d_transpose"},
                                           {"DepthwiseConv2D", "depthwise_conv2d"},
                                           {"LSTM", "lstm"},
                                           {"PReLU", "p_re_lu"},
                                           {"ReLU", "re_lu"},
                                           {"LeakyReLU", "leaky_re_lu"},
                                           {"MultiHeadAttention", "multi_head_attention"},
                                           {"GlobalAveragePooling2D", "global_average_pooling2d"},
                                           {"ELU", "elu"},
                                           {"EinsumDense", "einsum_dense"},
                                           {"TextVectorization", "text_vectorization"}})
    EXPECT_EQ(snake_case(class_name), folder);
}

TEST(Keras, M6_EdgesThatLeadNowhere) {
  EXPECT_THAT(error_of(model(input() + ", " + dense(call(R"("y", 0, 0)")))), HasSubstr("reads layer 'y', which does not exist"));
  EXPECT_THAT(error_of(model(input() + ", " + dense(call(R"("x", 3, 0)")))), HasSubstr("reads call 3 of layer 'x', which has 1"));
  EXPECT_THAT(error_of(model(input() + ", " + dense(call(R"("x", 0, 1)")))), HasSubstr("reads output 1 of layer 'x', which has 1"));
  EXPECT_THAT(error_of(model(input() + ", " + dense(call(R"("x", -1, 0)")))), HasSubstr("a tensor without a 'keras_history'"));
  EXPECT_THAT(error_of(model(input() + ", " + dense(call(R"("dense", 0, 0)")))), HasSubstr("layer 'dense' depends on itself"));
  EXPECT_THAT(error_of(model(input() + ", " + input())), HasSubstr("two layers 'x'"));
  EXPECT_THAT(error_of(model(input(), R"(["x", 0, 0])", R"(["none", 0, 0])")), HasSubstr("reads layer 'none'"));
  EXPECT_THAT(error_of(model(input(), "", R"(["x", 0, 0])")), HasSubstr("a model without inputs or outputs"));
  EXPECT_THAT(error_of(model(input() + ", " + dense(R"([["x", 0, 0, {}]])"))), HasSubstr("calls as Keras 2 wrote them"));
}

TEST(Keras, M9_SettingsOfAnotherKind) {
  EXPECT_THAT(error_of(model(input() + ", " + layer("dense", "Dense", R"(, "units": "many")", call(R"("x", 0, 0)")))),
              HasSubstr("layer 'dense' (Dense): 'units' is no integer"));
  EXPECT_THAT(error_of(model(input() + ", " + layer("dense", "Dense", R"(, "units": -1)", call(R"("x", 0, 0)")))),
              HasSubstr("layer 'dense' (Dense)"));
  EXPECT_THAT(error_of(model(input() + ", " + layer("dense", "Reshape", R"(, "target_shape": [-1, -1])", call(R"("x", 0, 0)")))),
              HasSubstr("a target shape that is none"));
  EXPECT_THAT(error_of(model(input() + ", " + layer("dense", "Permute", R"(, "dims": [9])", call(R"("x", 0, 0)")))),
              HasSubstr("no order of the axes"));
  EXPECT_THAT(error_of(model(layer("x", "InputLayer", R"(, "batch_shape": [null, -2], "dtype": "float32")", ""))),
              HasSubstr("a size that is none"));
  EXPECT_THAT(error_of(model(layer("x", "InputLayer", R"(, "batch_shape": [null, 2], "dtype": "complex64")", ""))),
              HasSubstr("has dtype 'complex64'"));
}

TEST(Keras, M10_ModelsWithoutEnd) {
  std::string inner = model(input() + ", " + dense(call(R"("x", 0, 0)")));
  std::string many;
  for (int i = 0; i < 100; ++i) many += R"({"module": "keras", "class_name": "Sequential", "config": {"name": "m", "layers": [)";
  for (int i = 0; i < 100; ++i) many += "]}}";
  EXPECT_NE(error_of(many), "");
  EXPECT_NE(error_of(R"({"module": "keras", "class_name": "Sequential", "config": {"name": "m", "layers": []}})"), "");
  EXPECT_THAT(error_of("{"), HasSubstr("config.json"));
  EXPECT_THAT(error_of("[]"), HasSubstr("is a model of class '?'"));
}

TEST(Keras, M12_SizesThatAskForTerabytes) {
  const std::string x = call(R"("x", 0, 0)");
  EXPECT_NE(error_of(model(input() + ", " + layer("dense", "RepeatVector", R"(, "n": 9000000000000000000)", x))), "no crash");
  EXPECT_NE(
      error_of(model(input() + ", " + layer("dense", "CategoryEncoding", R"(, "num_tokens": 9000000000000, "output_mode": "one_hot")", x))),
      "");
  EXPECT_NE(error_of(model(input() + ", " + layer("dense", "LSTM", R"(, "units": 9000000000000)", x))), "");
}

}  // namespace
}  // namespace serin::formats
