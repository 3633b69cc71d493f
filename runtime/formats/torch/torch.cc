// torch.cc: the archive of torch.export.save:
//
//   <name>/archive_format                          pt2
//   <name>/byteorder                               little
//   <name>/models/<model>.json                     the program
//   <name>/data/weights/<model>_weights_config.json, <name>/data/weights/weight_0 ...
//   <name>/data/constants/<model>_constants_config.json, ...

#include "runtime/formats/torch/torch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "runtime/formats/input_file.h"
#include "runtime/formats/recognise.h"
#include "runtime/formats/torch/graph_import.h"
#include "runtime/formats/torch/program.h"
#include "runtime/formats/torch/weights.h"
#include "runtime/formats/unsupported.h"
#include "runtime/formats/zip_archive.h"

namespace serin::formats {
namespace {

using namespace torch;  // NOLINT(google-build-using-namespace): the format's own folder

constexpr size_t kSmallFile = 64;

struct Archive {
  std::string folder;  ///< "<name>/"
  std::string model;   ///< "model", of models/model.json
};

Result<Archive> examine(const ZipArchive& zip) {
  Archive archive;
  std::vector<std::string> models;
  bool found = false;
  for (const auto& [name, entry] : zip.entries()) {
    if (name.ends_with("/archive_format")) {
      archive.folder = name.substr(0, name.rfind('/') + 1);
      found = true;
    }
  }
  const bool script =
      std::ranges::any_of(zip.entries(), [](const auto& each) { return each.first.find("/code/__torch__") != std::string::npos; });
  const bool pickle = std::ranges::any_of(zip.entries(), [](const auto& each) { return each.first.ends_with("/data.pkl"); });
  if (!found && script)
    return Error{
        Code::kUnsupported,
        "is a TorchScript program: torch.export.save(torch.export.export(model, inputs), 'model.pt2'), of the model it was made from"};
  if (!found && pickle)
    return Error{Code::kUnsupported,
                 "is pickled weights of torch.save, without a graph: torch.export.save(torch.export.export(model, inputs), 'model.pt2')"};
  if (!found && zip.find("serialized_exported_program.json"))
    return Error{Code::kUnsupported, "is a program of torch 2.7 or before, whose weights are pickled: load and save it with a newer torch"};
  if (!found) return Error{Code::kCorrupt, "is a zip archive, but not of torch.export: it has no 'archive_format'"};
  SERIN_TRY(const std::string format, zip.read(archive.folder + "archive_format", kSmallFile));
  if (format != "pt2") return Error{Code::kUnsupported, fmt::format("is an archive of format '{}', not 'pt2'", format)};
  SERIN_TRY(const std::string order, zip.read(archive.folder + "byteorder", kSmallFile));
  if (order != "little") return Error{Code::kUnsupported, fmt::format("was written in byte order '{}', not 'little'", order)};
  const std::string folder = archive.folder + "models/";
  bool compiled = false;
  for (const auto& [name, entry] : zip.entries()) {
    compiled = compiled || name.starts_with(archive.folder + "data/aotinductor/");
    if (name.starts_with(folder) && name.ends_with(".json")) models.push_back(name.substr(folder.size(), name.size() - folder.size() - 5));
  }
  if (models.empty() && compiled)
    return Error{Code::kUnsupported, "is compiled by AOTInductor for one machine: serve what torch.export.save writes of the same program"};
  if (models.size() != 1)
    return Error{Code::kUnsupported,
                 fmt::format("has {} programs in '{}'; one is expected: [{}]", models.size(), folder, fmt::join(models, ", "))};
  archive.model = models[0];
  return archive;
}

Status import_program(const Program& program, const ZipArchive& zip, const Archive& archive, graph::Graph& graph) {
  SERIN_TRY(const Weights weights, Weights::read(zip, archive.folder + "data/weights/", archive.model + "_weights_config.json"));
  SERIN_TRY(const Weights constants, Weights::read(zip, archive.folder + "data/constants/", archive.model + "_constants_config.json"));
  graph::Builder builder(graph);
  GraphImport import(builder, program.graph);
  std::set<std::string> names;
  for (const ProgramInput& input : program.inputs) {
    if (!names.insert(input.name).second) return Error{Code::kCorrupt, fmt::format("has two inputs '{}'", input.name)};
    if (input.kind == InputKind::kNumber) continue;
    if (input.kind == InputKind::kUser) {
      const TensorMeta* const meta = import.meta(input.name);
      if (!meta) return Error{Code::kCorrupt, fmt::format("declares no type for input '{}'", input.name)};
      import.define(input.name, graph.add_input(input.name, graph::Type::tensor(meta->dtype, value_sizes(*meta))));
      continue;
    }
    // Buffers that are not part of the state dictionary are stored among the constants.
    const Weights& from = weights.contains(input.source) ? weights : constants;
    SERIN_TRY(graph::ConstantPtr constant, from.get(input.source));
    import.define(input.name, builder.constant(input.source, std::move(constant)));
  }
  SERIN_CHECK(import.run());
  std::vector<graph::ValueId> outputs;
  std::vector<std::string> output_names;
  for (const std::string& name : program.outputs) {
    builder.start(name);
    graph::ValueId value = import.find(name);
    if (builder.error()) return *builder.error();
    if (value == graph::kNone) return Error{Code::kCorrupt, fmt::format("returns '{}', which nothing makes", name)};
    std::string unique = name;
    for (int number = 2; std::ranges::find(output_names, unique) != output_names.end(); ++number)
      unique = fmt::format("{}_{}", name, number);
    if (unique != name || graph.producer(value) == graph::kNone) value = builder.add(graph::Op::kIdentity, {value});
    outputs.push_back(value);
    output_names.push_back(unique);
  }
  if (builder.error()) return *builder.error();
  graph.set_outputs(outputs);
  graph.set_output_names(output_names);
  graph.name = archive.model;
  SERIN_CHECK(verify(graph));
  return {};
}

Result<graph::Graph> read(const std::shared_ptr<const InputFile>& file, const TorchLimits& limits) {
  auto zip = ZipArchive::open(file);
  if (!zip) {
    std::vector<std::byte> head(std::min<size_t>(file->size(), 4096));
    SERIN_CHECK(file->read(0, head));
    const bool zipped = head.size() >= 2 && head[0] == std::byte{'P'} && head[1] == std::byte{'K'};
    const auto other = zipped ? std::nullopt : recognise(head);
    return other ? Error{Code::kCorrupt, "is " + *other} : zip.error();
  }
  SERIN_TRY(const Archive archive, examine(*zip));
  SERIN_TRY(std::string text, zip->read(fmt::format("{}models/{}.json", archive.folder, archive.model), limits.program_bytes));
  SERIN_TRY(const JsonDocument document, JsonDocument::parse(std::move(text)));
  SERIN_TRY(const Program program, read_program(document.root()));
  if (program.graph.nodes.size() > limits.nodes)
    return Error{Code::kTooLarge, fmt::format("has {} nodes; {} are allowed", program.graph.nodes.size(), limits.nodes)};
  if (const auto nodes = nodes_without_reader(program.graph); !nodes.empty())
    return unsupported_nodes(nodes, "node uses an operator that is", "nodes use operators that are");
  graph::Graph graph;
  SERIN_CHECK(import_program(program, *zip, archive, graph));
  SERIN_CHECK(file->unchanged());
  return graph;
}

}  // namespace

Result<graph::Graph> read_torch(const std::string& path, const TorchLimits& limits) {
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
