// model_import.h: the layers of a model, called in the order of its edges.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/formats/keras/layer.h"

namespace serin::formats::keras {

class ModelImport {
 public:
  /// `most_calls`: of layers.
  ModelImport(Shared& shared, size_t most_calls) : shared_(shared), most_calls_(most_calls) {}

  /// All layers that are not supported, also those of models in the model.
  static std::vector<std::string> unsupported_layers(Json model);
  /// Fills the graph of `shared`.
  Status run(Json model);

 private:
  /// A layer in a model, and where its weights are.
  struct Entry {
    std::string name, class_name, module, folder;
    Json json;
  };
  struct Output {
    std::string name;
    Tensor tensor;
  };
  class Functional;

  static Result<std::vector<Entry>> entries_of(Json model, const std::string& folder, bool sequential);
  Result<std::vector<Output>> call_model(Json model, const std::string& folder, const std::vector<Tensor>* inputs);
  Result<std::vector<Output>> call_sequential(Json model, const std::string& folder, const std::vector<Tensor>* inputs);
  Result<std::vector<Output>> call_functional(Json model, const std::string& folder, const std::vector<Tensor>* inputs);
  Result<std::vector<Tensor>> call_layer(const Entry& entry, std::vector<Tensor> inputs, Layer::Call call);
  Result<Tensor> add_input(const std::string& name, Json shape, Json dtype);

  Shared& shared_;
  const size_t most_calls_;
  size_t calls_ = 0;
  int depth_ = 0;
  std::set<std::string, std::less<>> symbols_;
};

}  // namespace serin::formats::keras
