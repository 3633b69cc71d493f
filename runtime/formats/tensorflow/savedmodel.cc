// savedmodel.cc: reads bytes into messages, messages into a graph, and checks the graph.

#include "runtime/formats/tensorflow/savedmodel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/formats/recognise.h"
#include "runtime/formats/tensorflow/import.h"

namespace serin::formats {
namespace {

using namespace tf;

std::string folder_of_model(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

Result<MetaGraph> decode_saved_model(Bytes bytes, const SavedModelLimits& limits) {
  wire::Decoding decoding{.begin = bytes.data(), .message_limit = 64 * limits.nodes, .nesting_limit = limits.nesting, .error = {}};
  MetaGraph graph = tf::read_saved_model(wire::Message(decoding, "SavedModel", bytes));
  if (!decoding.error) return graph;
  if (decoding.error->code == Code::kTooLarge) return *decoding.error;
  if (const auto what = recognise(bytes)) return Error{Code::kCorrupt, "not a SavedModel but " + *what};
  return decoding.error->in("not a SavedModel, or a damaged one");
}

struct Chosen {
  const SignatureDef* signature = nullptr;
  graph::Graph::Signature named;
};

/// The one of that name; without a name `serving_default`, or the only one.
Result<Chosen> choose_signature(const MetaGraph& graph, std::string_view wanted) {
  std::vector<std::string_view> names;
  for (const auto& [name, signature] : graph.signatures)
    if (!name.starts_with("__saved_model")) names.push_back(name);  // those are the operations that load and train
  if (names.empty())
    return Error{Code::kUnsupported, "has no signature: export it with model.export(), or tf.saved_model.save(signatures=...)"};
  const bool usual = std::ranges::find(names, "serving_default") != names.end();
  if (wanted.empty() && (usual || names.size() == 1)) wanted = usual ? "serving_default" : names.front();
  if (wanted.empty())
    return Error{
        Code::kUnsupported,
        fmt::format("has several signatures, and none is 'serving_default': 'signatures' in serin.yaml or --signature chooses among {}",
                    fmt::join(names, ", "))};
  if (std::ranges::find(names, wanted) == names.end())
    return Error{Code::kNotFound, fmt::format("has no signature '{}'; it has {}", wanted, fmt::join(names, ", "))};
  Chosen chosen{&graph.signatures.at(wanted), {std::string(wanted), std::string(graph.signatures.at(wanted).method), {}}};
  for (const std::string_view name : names)
    if (name != wanted) chosen.named.others.emplace_back(name);
  return chosen;
}

/// Again, as long as an import finds sizes that have two names.
Result<graph::Graph> import_with_equal_sizes(const Program& program, State& state, const ImportLimits& limits,
                                             const SignatureDef& signature) {
  constexpr int kMostImports = 4;
  Importer::EqualSizes equal;
  for (int imports = 1;; ++imports) {
    Importer importer(program, state, limits);
    SERIN_TRY(graph::Graph graph, importer.run(signature, equal));
    if (importer.equal_sizes() == equal || imports == kMostImports) return graph;
    equal = importer.equal_sizes();
  }
}

Result<graph::Graph> import_saved_model(const std::string& path, const SavedModelLimits& limits, const SavedModelChoice& choice) try {
  SERIN_TRY(InputFile opened, InputFile::open(path));
  const auto file = std::make_shared<const InputFile>(std::move(opened));
  SERIN_TRY(const std::vector<std::byte> bytes, file->read_all(limits.file_bytes));
  SERIN_TRY(const MetaGraph meta, decode_saved_model(bytes, limits));
  SERIN_TRY(Chosen chosen, choose_signature(meta, choice.signature));
  Program program(meta);
  SERIN_CHECK(program.index());
  State state(program, folder_of_model(path), file, bytes.data(), choice.weights);
  SERIN_CHECK(state.load());
  SERIN_TRY(graph::Graph graph,
            import_with_equal_sizes(program, state, {.nodes = limits.nodes, .nesting = limits.nesting}, *chosen.signature));
  graph.signature = std::move(chosen.named);
  SERIN_CHECK(graph::verify(graph));
  SERIN_CHECK(graph::infer_shapes(graph));
  SERIN_CHECK(state.unchanged());
  SERIN_CHECK(file->unchanged());
  return graph;
} catch (const graph::LostConstant& lost) {
  return lost.error();
}

}  // namespace

Result<graph::Graph> read_saved_model(const std::string& path, const ReplaceableInputs& replaceable, const SavedModelLimits& limits,
                                      const SavedModelChoice& choice) {
  if (!replaceable.empty()) return invalid(fmt::format("a SavedModel has no replaceable inputs, such as '{}'", *replaceable.begin()));
  auto graph = import_saved_model(path, limits, choice);
  if (!graph) return graph.error().in(path.substr(path.rfind('/') + 1));
  return graph;
}

}  // namespace serin::formats
