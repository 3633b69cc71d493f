// keras.cc: the archive that model.save("model.keras") writes:
//
//   metadata.json              the version of Keras
//   config.json                layers, settings, edges
//   model.weights.h5           the weights, in folders by layer (hdf5.h)
//   assets/layers/...          vocabularies

#include "runtime/formats/keras/keras.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/formats/input_file.h"
#include "runtime/formats/keras/model_import.h"
#include "runtime/formats/recognise.h"
#include "runtime/formats/unsupported.h"

namespace serin::formats {
namespace {

using namespace keras;  // NOLINT(google-build-using-namespace): the format's own folder

constexpr size_t kMetadataBytes = 1 << 20;

Status check_version(const ZipArchive& zip) {
  if (!zip.find("config.json") || !zip.find("metadata.json"))
    return Error{Code::kCorrupt, "is a zip archive, but not of Keras: it has no 'config.json' and 'metadata.json'"};
  SERIN_TRY(std::string text, zip.read("metadata.json", kMetadataBytes));
  SERIN_TRY(const JsonDocument document, JsonDocument::parse(std::move(text)));
  const std::string version = document.root()["keras_version"].text_or("?");
  if (version.starts_with("3.")) return {};
  return Error{Code::kUnsupported, fmt::format("was saved by Keras {}: load and save it with Keras 3", version)};
}

Status check_model(Json model) {
  const std::string class_name = model["class_name"].text_or("?");
  const bool known = class_name == "Functional" || class_name == "Sequential" || class_name == "Model";
  if (!known || !model["config"]["layers"].is_array())
    return Error{Code::kUnsupported,
                 fmt::format("is a model of class '{}', which is Python code: Functional and Sequential are read; export others with "
                             "model.export('FOLDER')",
                             class_name)};
  if (const auto layers = ModelImport::unsupported_layers(model); !layers.empty())
    return unsupported_nodes(layers, "layer is", "layers are");
  return {};
}

Result<graph::Graph> read(const std::shared_ptr<const InputFile>& file, const KerasLimits& limits) {
  auto zip = ZipArchive::open(file);
  if (!zip) {
    std::vector<std::byte> head(std::min<size_t>(file->size(), 4096));
    SERIN_CHECK(file->read(0, head));
    const bool zipped = head.size() >= 2 && head[0] == std::byte{'P'} && head[1] == std::byte{'K'};
    const auto other = zipped ? std::nullopt : recognise(head);
    return other ? Error{Code::kCorrupt, "is " + *other} : zip.error();
  }
  SERIN_CHECK(check_version(*zip));
  SERIN_TRY(std::string text, zip->read("config.json", limits.config_bytes));
  auto document = JsonDocument::parse(std::move(text));
  if (!document) return document.error().in("config.json");
  const Json model = document->root();
  SERIN_CHECK(check_model(model));
  const ZipEntry* const entry = zip->find("model.weights.h5");
  if (!entry) return Error{Code::kCorrupt, "has no 'model.weights.h5'"};
  auto weights = Hdf5::open({file, entry->offset}, entry->size);
  if (!weights) return weights.error().in("model.weights.h5");
  const tf::MetaGraph nothing;
  const tf::Program program(nothing);
  tf::State state(program, "", file, nullptr);
  tf::Importer importer(program, state, {});
  tf::Scope scope;
  Shared shared{importer, scope, *weights, *zip};
  SERIN_CHECK(ModelImport(shared, limits.calls).run(model));
  graph::Graph graph = std::move(scope.graph());
  graph.name = model["config"]["name"].text_or("");
  SERIN_CHECK(graph::verify(graph));
  SERIN_CHECK(graph::infer_shapes(graph));
  SERIN_CHECK(file->unchanged());
  return graph;
}

}  // namespace

Result<graph::Graph> read_keras(const std::string& path, const KerasLimits& limits) {
  SERIN_TRY(InputFile opened, InputFile::open(path));
  const std::string name = std::filesystem::path(path).filename().string();
  const auto file = std::make_shared<const InputFile>(std::move(opened));
  try {
    auto graph = read(file, limits);
    return graph ? std::move(graph) : graph.error().in(name);
  } catch (const graph::LostConstant& lost) {
    return lost.error();
  }
}

}  // namespace serin::formats
