// model_file.cc: finds the model file in a folder, and recognises files of other formats by their names. The content of a file is examined
// only when it was taken for a model and cannot be read (recognise.h).

#include "runtime/formats/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/formats/input_file.h"

namespace serin::formats {
namespace {

namespace fs = std::filesystem;

struct Readable {
  Format format;
  std::string_view ending;                           ///< of the file's name
  std::string_view companion;                        ///< ending of a file that must be next to it, with the same stem; empty: none
  bool (*content)(std::string_view head) = nullptr;  ///< what the file must begin with, for an ending that says little
};

bool is_lightgbm(std::string_view head) { return head.starts_with("tree\n") || head.starts_with("tree\r\n"); }
bool is_xgboost_json(std::string_view head) {
  const size_t brace = head.find_first_not_of(" \t\r\n");
  return brace != std::string_view::npos && head[brace] == '{' && head.find("\"learner\"") != std::string_view::npos;
}
bool is_xgboost_binary(std::string_view head) {
  return head.starts_with("{L") && head.substr(0, 32).find("learner") != std::string_view::npos;
}

/// Models that are read. An ending that other files have as well needs a companion.
constexpr Readable kReadable[] = {
    {Format::kOnnx, ".onnx", ""},
    {Format::kPaddle, ".pdmodel", ""},
    {Format::kPaddle, "__model__", ""},
    {Format::kPaddle, "inference.json", ""},
    {Format::kPaddle, ".json", ".pdiparams"},
    {Format::kTensorFlow, "saved_model.pb", ""},
    {Format::kKeras, ".keras", ""},
    {Format::kTorch, ".pt2", ""},
    {Format::kXgboost, ".ubj", ""},
    {Format::kXgboost, ".json", "", is_xgboost_json},
    {Format::kXgboost, ".bst", "", is_xgboost_json},
    {Format::kXgboost, ".bst", "", is_xgboost_binary},
    {Format::kXgboost, ".model", "", is_xgboost_json},
    {Format::kXgboost, ".model", "", is_xgboost_binary},
    {Format::kLightGbm, ".txt", "", is_lightgbm},
    {Format::kLightGbm, ".bst", "", is_lightgbm},
    {Format::kLightGbm, ".model", "", is_lightgbm},
};

bool has_companion(const fs::path& path, const Readable& row) {
  std::error_code ignored;
  const std::string name = path.filename().string(), stem = name.substr(0, name.size() - row.ending.size());
  return row.companion.empty() || fs::exists(path.parent_path() / (stem + std::string(row.companion)), ignored);
}

/// Whether the file begins as its row wants. A file that cannot be read is no model.
bool has_content(const std::string& path, const Readable& row) {
  if (!row.content) return true;
  const auto file = InputFile::open(path);
  if (!file) return false;
  std::string head(std::min<size_t>(file->size(), 4096), '\0');
  return file->read(0, std::as_writable_bytes(std::span(head))).has_value() && row.content(head);
}

struct Foreign {
  std::string_view ending;  ///< of the file's name
  const char* what;         ///< and what to do
};

constexpr const char* kXgboost =
    "an XGBoost model in a binary format that XGBoost has given up: xgboost.Booster(model_file=FILE).save_model('model.ubj')";

// The first that fits any file of a folder counts: a graph before its weights.
constexpr Foreign kForeign[] = {
    {"saved_model.pbtxt", "a TensorFlow SavedModel: python -m tf2onnx.convert --saved-model FOLDER --output model.onnx"},
    {".pdiparams", "the parameters of a Paddle model, whose program (.json or .pdmodel) must be next to it"},
    {".pdparams",
     "a Python pickle of Paddle's training: paddle.jit.save(layer, 'NAME', input_spec=[...]), of the layer that it belongs to"},
    {".h5", "a Keras model (HDF5) of an older version: keras.saving.load_model(FILE).save('model.keras')"},
    {".hdf5", "a Keras model (HDF5) of an older version: keras.saving.load_model(FILE).save('model.keras')"},
    {".tflite", "a TensorFlow Lite model: python -m tf2onnx.convert --tflite FILE --output model.onnx"},
    {".pb", "a frozen TensorFlow graph: python -m tf2onnx.convert --graphdef FILE --inputs X:0 --outputs Y:0 --output model.onnx"},
    {".graphdef", "a frozen TensorFlow graph: python -m tf2onnx.convert --graphdef FILE --inputs X:0 --outputs Y:0 --output model.onnx"},
    {".xml", "an OpenVINO model, which cannot be converted back: export to ONNX what it was converted from"},
    {".plan", "a TensorRT plan, which runs on the GPU it was built for only: serve the ONNX model it was built from"},
    {".engine", "a TensorRT plan, which runs on the GPU it was built for only: serve the ONNX model it was built from"},
    {".trt", "a TensorRT plan, which runs on the GPU it was built for only: serve the ONNX model it was built from"},
    {".ort", "an ONNX Runtime file: serve the .onnx it was made from"},
    {".safetensors", "a safetensors file: weights without a graph; optimum-cli export onnx --model FOLDER OUT"},
    {".pt", "a PyTorch model: torch.onnx.export(model, example_inputs, 'model.onnx', dynamic_shapes=...)"},
    {".pth", "a PyTorch model: torch.onnx.export(model, example_inputs, 'model.onnx', dynamic_shapes=...)"},
    {".torchscript",
     "a TorchScript program: torch.onnx.export(model, example_inputs, 'model.onnx', dynamic_shapes=...), of the model it was traced from"},
    {".mar",
     "an archive of TorchServe: torch.onnx.export(model, example_inputs, 'model.onnx', dynamic_shapes=...), of the model that is in it"},
    {".ckpt", "a checkpoint: build the model it belongs to, load it, and export that to ONNX"},
    {".joblib",
     "a pickled scikit-learn model: skl2onnx.to_onnx(model, X[:1]).SerializeToString(); of XGBoost, model.save_model('model.ubj'); of "
     "LightGBM, "
     "model.booster_.save_model('model.txt')"},
    {".pkl",
     "a Python pickle: where it is a model of scikit-learn, skl2onnx.to_onnx(model, X[:1]).SerializeToString(); of PyTorch, "
     "torch.onnx.export(model, example_inputs, 'model.onnx', dynamic_shapes=...); of XGBoost, model.save_model('model.ubj'); of LightGBM, "
     "model.booster_.save_model('model.txt')"},
    {".bst", kXgboost},
    {"xgboost.model", kXgboost},
    {".cbm", "a CatBoost model: model.save_model('model.onnx', format='onnx')"},
    {".pmml", "a PMML document, which cannot be converted back: export to ONNX (skl2onnx, onnxmltools) the model that it was written from"},
    {".gguf", "a GGUF file, which is for llama.cpp: optimum-cli export onnx --model NAME OUT, of the model it was made from"},
    {".mlmodel", "a Core ML model: export to ONNX what it was converted from"},
    {".bin", "weights without a graph; if they are from Hugging Face: optimum-cli export onnx --model FOLDER OUT"},
    {"model.py",
     "a program for Triton's Python backend, which Serin does not run: export to ONNX the model that it calls; the remaining work "
     "goes into that graph, or to the clients"},
};

/// Files, and folders that are one model (model.savedmodel/, model.onnx/); sorted.
std::vector<std::string> names_in(const std::string& folder) {
  constexpr size_t kMost = 1024;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && names.size() < kMost; entry.increment(error)) {
    std::error_code ignored;
    const std::string name = entry->path().filename().string();
    if (!entry->is_directory(ignored))
      names.push_back(name);
    else if (fs::exists(entry->path() / "saved_model.pb", ignored))
      names.push_back(name + "/saved_model.pb");
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

const char* const kReadableFormats =
    "ONNX (.onnx), torch.export (.pt2), XGBoost (.ubj, .json), LightGBM (.txt), TensorFlow (saved_model.pb), Keras (.keras) and Paddle "
    "(.json "
    "or .pdmodel, with .pdiparams)";

std::optional<Format> format_of(const std::string& path) {
  const auto fits = [&path](const Readable& row) {
    return path.ends_with(row.ending) && has_companion(path, row) && has_content(path, row);
  };
  const auto found = std::ranges::find_if(kReadable, fits);
  return found == std::end(kReadable) ? std::nullopt : std::optional(found->format);
}

bool has_model_ending(std::string_view name) {
  return std::ranges::any_of(kReadable,
                             [name](const Readable& row) { return row.companion.empty() && !row.content && name.ends_with(row.ending); });
}

const char* foreign_kind(std::string_view name) {
  if (has_model_ending(name)) return nullptr;  // saved_model.pb is no other .pb
  const auto fits = [name](const Foreign& foreign) { return name.ends_with(foreign.ending); };
  const auto found = std::ranges::find_if(kForeign, fits);
  return found == std::end(kForeign) ? nullptr : found->what;
}

std::optional<std::string> describe_foreign_file(const std::string& name) {
  const char* const what = foreign_kind(name);
  return what ? std::optional(fmt::format("'{}' is {}", name, what)) : std::nullopt;
}

std::optional<std::string> describe_foreign_model(const std::string& folder) {
  const std::vector<std::string> names = names_in(folder);
  for (const Foreign& foreign : kForeign)
    for (const std::string& name : names)
      if (name.ends_with(foreign.ending) && !has_model_ending(name)) return fmt::format("'{}' is {}", name, foreign.what);
  return std::nullopt;
}

Result<std::string> find_model_file(const std::string& folder, const std::string& name) {
  const fs::path path = fs::path(folder) / name;
  std::error_code error;
  if (fs::is_directory(path, error)) {  // Triton's way to have weights beside a graph
    for (const char* const inside : {"model.onnx", "saved_model.pb"})
      if (fs::is_regular_file(path / inside, error)) return (path / inside).string();
    return Error{Code::kNotFound, fmt::format("'{}' is a directory, without a 'model.onnx' or 'saved_model.pb' in it", name)};
  }
  if (fs::exists(path, error)) return path.string();
  if (error) return Error{Code::kPermissionDenied, fmt::format("'{}' cannot be examined: {}", name, error.message())};
  std::vector<std::string> found;
  std::optional<Format> best;
  for (const std::string& each : names_in(folder)) {
    const auto format = format_of((fs::path(folder) / each).string());
    if (!format || (best && *best < *format)) continue;
    if (!best || *format < *best) found.clear();
    best = format;
    found.push_back(each);
  }
  if (found.size() == 1) return (fs::path(folder) / found.front()).string();
  if (const auto foreign = describe_foreign_model(folder))
    return Error{Code::kUnsupported, fmt::format("there is no '{}', and {}", name, *foreign)};
  return Error{Code::kNotFound, found.empty()
                                    ? fmt::format("there is no '{}'", name)
                                    : fmt::format("there is no '{}', and more than one other model: {}", name, fmt::join(found, ", "))};
}

}  // namespace serin::formats
