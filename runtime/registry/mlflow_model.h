// mlflow_model.h: which files of a model that MLflow has logged are the model itself, by its MLmodel file.
//
// MLmodel (YAML) has `flavors`, and of each where its files are. A version for Serin has these files alone, under the names by which Serin
// knows their format: no MLmodel, no requirements, no code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/registry/http_files.h"

namespace serin::registry {

/// One that is a part of the model.
struct ModelFile {
  ListedFile artifact;  ///< below the folder of the logged model
  std::string name;     ///< in the folder of the version
};

struct MlflowModel {
  std::string flavor;  ///< "onnx"
  std::vector<ModelFile> files;
};

/// Flavours onnx, tensorflow (SavedModel or .keras), xgboost (.json, .ubj) and lightgbm (text). `name`: of the file, for messages. Errors:
/// kInvalidArgument: it is no MLmodel; kUnsupported: only other flavours, with how to export such a model; kNotFound: a file that it names is
/// not there.
Result<MlflowModel> read_mlmodel(std::string_view text, const std::string& name, const std::vector<ListedFile>& files);

}  // namespace serin::registry
