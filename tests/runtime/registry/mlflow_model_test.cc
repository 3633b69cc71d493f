// mlflow_model_test.cc: which files of a logged model are the model, and what its address means.

#include "runtime/registry/mlflow_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/registry/mlflow_registry.h"

namespace serin::registry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// "artifact > name" of each file, or the error.
std::vector<std::string> chosen(std::string_view mlmodel, const std::vector<std::string>& paths) {
  std::vector<ListedFile> files;
  for (const std::string& path : paths) files.push_back({path, 1});
  const auto model = read_mlmodel(mlmodel, "MLmodel", files);
  if (!model) return {model.error().message};
  std::vector<std::string> found{model->flavor};
  for (const ModelFile& file : model->files) found.push_back(file.artifact.path + " > " + file.name);
  return found;
}

const std::vector<std::string> kBeside{"MLmodel",          "conda.yaml",         "python_env.yaml",
                                       "requirements.txt", "input_example.json", "code/model.py"};

std::vector<std::string> beside(std::vector<std::string> more) {
  more.insert(more.end(), kBeside.begin(), kBeside.end());
  return more;
}

TEST(MlflowModel, OnnxHasItsWeightsNextToIt) {
  const std::string mlmodel =
      "flavors:\n  onnx: {data: model.onnx, onnx_version: 1.17.0}\n  python_function: {loader_module: mlflow.onnx}\n";
  EXPECT_THAT(chosen(mlmodel, beside({"model.onnx"})), ElementsAre("onnx", "model.onnx > model.onnx"));
  EXPECT_THAT(chosen(mlmodel, beside({"4f2c-91ab", "model.onnx"})),
              ElementsAre("onnx", "model.onnx > model.onnx", "4f2c-91ab > 4f2c-91ab"));
  EXPECT_THAT(chosen("flavors: {onnx: {data: sub/net.onnx}}", beside({"sub/net.onnx", "sub/w.bin", "other.bin"})),
              ElementsAre("onnx", "sub/net.onnx > model.onnx", "sub/w.bin > w.bin"));
  EXPECT_THAT(chosen(mlmodel, kBeside), ElementsAre("MLmodel: names model.onnx, which is not there"));
}

TEST(MlflowModel, TensorFlowIsASavedModelOrKeras) {
  EXPECT_THAT(chosen("flavors: {tensorflow: {saved_model_dir: tf2model, model_type: tf2-module}}",
                     beside({"tf2model/saved_model.pb", "tf2model/variables/variables.index", "tf2models/other"})),
              UnorderedElementsAre("tensorflow", "tf2model/saved_model.pb > saved_model.pb",
                                   "tf2model/variables/variables.index > variables/variables.index"));
  const char* const keras = "flavors: {tensorflow: {data: data, model_type: keras, save_format: tf}}";
  EXPECT_THAT(chosen(keras, beside({"data/model.keras", "data/keras_module.txt"})),
              ElementsAre("tensorflow", "data/model.keras > model.keras"));
  EXPECT_THAT(chosen(keras, beside({"data/model/saved_model.pb", "data/save_format.txt"})),
              ElementsAre("tensorflow", "data/model/saved_model.pb > saved_model.pb"));
  EXPECT_THAT(chosen(keras, beside({"data/model.h5"}))[0], HasSubstr("data/model is no SavedModel, and there is no .keras file"));
}

TEST(MlflowModel, TreesHaveTheNamesOfTheirFormats) {
  EXPECT_THAT(chosen("flavors: {xgboost: {data: model.json, model_format: json}}", beside({"model.json"})),
              ElementsAre("xgboost", "model.json > model.json"));
  EXPECT_THAT(chosen("flavors: {xgboost: {data: model.ubj}}", beside({"model.ubj"})), ElementsAre("xgboost", "model.ubj > model.ubj"));
  EXPECT_THAT(chosen("flavors: {xgboost: {data: model.xgb}}", beside({"model.xgb"}))[0], HasSubstr("model_format='json'"));
  EXPECT_THAT(chosen("flavors: {lightgbm: {data: model.lgb}}", beside({"model.lgb"})), ElementsAre("lightgbm", "model.lgb > model.txt"));
  EXPECT_THAT(chosen("flavors: {lightgbm: {data: model.pkl}}", beside({"model.pkl"}))[0], HasSubstr("is a pickle; log its booster"));
}

TEST(MlflowModel, OtherFlavoursAreRefusedByName) {
  EXPECT_THAT(chosen("flavors: {python_function: {loader_module: mlflow.sklearn}, sklearn: {pickled_model: model.pkl}}", {})[0],
              HasSubstr("its flavour is sklearn; Serin reads onnx, tensorflow, xgboost and lightgbm: convert it with skl2onnx"));
  EXPECT_THAT(chosen("flavors: {pytorch: {}}", {})[0], HasSubstr("torch.onnx.export"));
  EXPECT_THAT(chosen("flavors: {python_function: {}}", {})[0], HasSubstr("its flavour is python_function"));
}

TEST(MlflowModel, HostileFilesAreRefused) {
  for (const char* path : {"../../etc/passwd", "/etc/passwd", "''", "a/../b", "a//b"})
    for (const char* flavor : {"onnx: {data: ", "tensorflow: {saved_model_dir: ", "xgboost: {data: ", "lightgbm: {data: "})
      EXPECT_THAT(chosen(fmt::format("flavors: {{{}{}}}}}", flavor, path), {"../../etc/passwd", "a/../b"})[0],
                  HasSubstr("must be a path in the folder of the model"))
          << flavor << path;
  EXPECT_THAT(chosen("flavors: [onnx]", {})[0], HasSubstr("must be a map of flavours"));
  EXPECT_THAT(chosen("run_id: 7", {})[0], HasSubstr("flavors"));
  EXPECT_THAT(chosen("flavors: {onnx: {data: [1]}}", {})[0], HasSubstr("MLmodel:1"));
  EXPECT_THAT(chosen("{", {})[0], HasSubstr("MLmodel:"));
  EXPECT_THAT(chosen("\0\xff", {})[0], HasSubstr("MLmodel"));
}

TEST(MlflowAddress, NamesAModelAndAVersion) {
  const auto meaning = [](std::string_view uri) {
    const auto reference = parse_model_uri(uri);
    return reference ? reference->str() : reference.error().message;
  };
  EXPECT_EQ(meaning("models:/digits/7"), "digits:7");
  EXPECT_EQ(meaning("models:/digits@production"), "digits:production");
  EXPECT_EQ(meaning("models:/digits/latest"), "digits:latest");
  EXPECT_EQ(meaning("models:/digits/Production"), "digits:Production");
  for (const char* uri :
       {"models:/", "models:/digits", "models:/digits/", "models:/digits@", "models:/digits@7", "models:/@x", "models:digits/7"})
    EXPECT_THAT(meaning(uri), HasSubstr("is not models:/NAME/VERSION")) << uri;
  for (const char* uri : {"models:/a b/7", "models:/digits/7/8", "models:/../7", "models:/digits/..", "models:/digits@a/b"})
    EXPECT_THAT(meaning(uri), HasSubstr("a name has 1 to 128 letters")) << uri;
}

}  // namespace
}  // namespace serin::registry
