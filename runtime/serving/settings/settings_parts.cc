#include "runtime/serving/settings/settings_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/protocol/tensor/datatype.h"

namespace serin::serving {
namespace {

/// A list of maps, or of what `read` makes of each.
template <class T, class Read>
Result<std::vector<T>> read_list(const config::Node& node, std::string_view what, Read read) {
  if (!node.is_list() || node.items().empty()) return node.error(fmt::format("must be a list of {}", what));
  std::vector<T> list;
  for (const config::Node& item : node.items()) {
    SERIN_TRY(T value, read(item));
    list.push_back(std::move(value));
  }
  return list;
}

Result<DType> read_dtype(const config::Node& node) {
  SERIN_TRY(const std::string word, node.text());
  const auto dtype = protocol::parse_oip_datatype(word);
  if (!dtype) return node.error("must be a datatype of the protocol (FP32, INT64, BYTES ...), not '" + word + "'");
  return *dtype;
}

Result<std::vector<int64_t>> read_dims(const config::Node& node) {
  if (!node.is_list() || !Shape::fits(node.items().size() + 1)) return node.error("must be a list of sizes");
  std::vector<int64_t> dims;
  for (const config::Node& item : node.items()) {
    SERIN_TRY(const int64_t dim, item.integer(1, INT32_MAX));
    dims.push_back(dim);
  }
  return dims;
}

/// {zero: true}, {random: true} or {file: name}, which lies in `subfolder` of the model's.
Result<Filling> read_filling(const config::Node& node, const std::string& folder, std::string_view subfolder) {
  SERIN_TRY(const bool zero, node.boolean("zero", false));
  SERIN_TRY(const bool random, node.boolean("random", false));
  const auto file = node.find("file");
  if (zero + random + file.has_value() != 1) return node.error("must have one of 'zero: true', 'random: true' and 'file'");
  if (!file) return Filling{random ? Filling::Kind::kRandom : Filling::Kind::kZero, {}};
  SERIN_TRY(const std::string name, file->text());
  auto path = file_of_model(folder, subfolder, name);
  if (!path) return file->error(path.error().message);
  return Filling{Filling::Kind::kFile, std::move(*path)};
}

Result<std::map<std::string, std::string>> read_names(const config::Node& node) {
  if (!node.is_map() || node.keys().empty()) return node.error("must be a map from the model's tensors to the ensemble's: {pixels: image}");
  std::map<std::string, std::string> names;
  for (const std::string& own : node.keys()) {
    SERIN_TRY(const config::Node name, node.at(own));
    SERIN_TRY(names[own], name.text());
    if (names[own].empty()) return name.error("a tensor has a name");
  }
  return names;
}

Result<EnsembleStep> read_step(const config::Node& node) {
  SERIN_CHECK(node.allow_only({"model", "version", "inputs", "outputs"}));
  EnsembleStep step;
  SERIN_TRY(const config::Node model, node.at("model"));
  SERIN_TRY(step.model, model.text());
  SERIN_TRY(const int64_t version, node.integer("version", 1, INT64_MAX, 0));
  if (version > 0) step.version = std::to_string(version);
  SERIN_TRY(const config::Node inputs, node.at("inputs"));
  SERIN_TRY(step.inputs, read_names(inputs));
  SERIN_TRY(const config::Node outputs, node.at("outputs"));
  SERIN_TRY(step.outputs, read_names(outputs));
  return step;
}

Result<protocol::TensorSpec> read_tensor_name(const config::Node& node) {
  SERIN_TRY(std::string name, node.text());
  return protocol::TensorSpec{.name = std::move(name), .ranked = false};
}

Result<WarmupRequest> read_warmup_request(const config::Node& node, const std::string& folder) {
  SERIN_CHECK(node.allow_only({"name", "batch_size", "count", "inputs"}));
  WarmupRequest request;
  SERIN_TRY(const config::Node name, node.at("name"));
  SERIN_TRY(request.name, name.text());
  SERIN_TRY(request.batch_size, node.integer("batch_size", 1, kMostBatch, 1));
  SERIN_TRY(const int64_t count, node.integer("count", 1, 10'000, 1));
  request.count = static_cast<int>(count);
  SERIN_TRY(const config::Node inputs, node.at("inputs"));
  if (!inputs.is_map()) return inputs.error("must be a map from inputs to {dims, and zero, random or file}");
  for (const std::string& input : inputs.keys()) {
    SERIN_TRY(const config::Node each, inputs.at(input));
    SERIN_CHECK(each.allow_only({"dtype", "dims", "zero", "random", "file"}));
    WarmupInput& own = request.inputs[input];
    if (const auto dtype = each.find("dtype")) {
      SERIN_TRY(own.dtype, read_dtype(*dtype));
    }
    if (const auto dims = each.find("dims")) {
      SERIN_TRY(own.dims, read_dims(*dims));
    }
    SERIN_TRY(own.data, read_filling(each, folder, "warmup"));
  }
  return request;
}

Result<SequenceControl> read_control(const config::Node& node, const std::string& input) {
  SERIN_CHECK(node.allow_only({"kind", "dtype", "values"}));
  SequenceControl control{.input = input};
  SERIN_TRY(const config::Node kind, node.at("kind"));
  SERIN_TRY(const std::string word, kind.one_of({"start", "end", "ready", "id"}));
  using Kind = SequenceControl::Kind;
  control.kind = word == "start" ? Kind::kStart : word == "end" ? Kind::kEnd : word == "ready" ? Kind::kReady : Kind::kId;
  if (const auto dtype = node.find("dtype")) {
    SERIN_TRY(control.dtype, read_dtype(*dtype));
  }
  const auto values = node.find("values");
  if (!values) return control;
  if (control.kind == Kind::kId || !values->is_list() || values->items().size() != 2)
    return values->error("must be the values for no and for yes: [0, 1]; not of an id");
  for (size_t i = 0; i < 2; ++i) {
    SERIN_TRY(control.values[i], values->items()[i].number(-1e9, 1e9));
  }
  return control;
}

Result<SequenceState> read_state(const config::Node& node, const std::string& folder) {
  SERIN_CHECK(node.allow_only({"input", "output", "dims", "zero", "file"}));
  SequenceState state;
  SERIN_TRY(const config::Node input, node.at("input"));
  SERIN_TRY(state.input, input.text());
  SERIN_TRY(const config::Node output, node.at("output"));
  SERIN_TRY(state.output, output.text());
  if (const auto dims = node.find("dims")) {
    SERIN_TRY(state.dims, read_dims(*dims));
  }
  if (node.has("zero") || node.has("file")) {
    SERIN_TRY(state.initial, read_filling(node, folder, "initial_state"));
  }
  return state;
}

}  // namespace

Result<std::string> file_of_model(const std::string& folder, std::string_view subfolder, const std::string& name) {
  const std::filesystem::path relative(name);
  if (folder.empty() || name.empty() || relative.is_absolute() || std::ranges::find(relative, "..") != relative.end())
    return Error{Code::kInvalidArgument,
                 fmt::format("file '{}' must lie in the model's folder{}{}", name, subfolder.empty() ? "" : ", under ", subfolder)};
  return (std::filesystem::path(folder) / subfolder / relative).string();
}

Result<std::vector<WarmupRequest>> read_warmup(const config::Node& node, const std::string& folder) {
  return read_list<WarmupRequest>(node, "requests, or true or false",
                                  [&](const config::Node& item) { return read_warmup_request(item, folder); });
}

Result<std::vector<std::string>> read_signatures(const config::Node& node) {
  SERIN_TRY(auto names, read_list<std::string>(node, "names of signatures", [](const config::Node& item) { return item.text(); }));
  if (names.empty()) return node.error("names no signature");
  for (auto name = names.begin(); name != names.end(); ++name)
    if (std::find(names.begin(), name, *name) != name) return node.error(fmt::format("names '{}' twice", *name));
  return names;
}

Result<std::set<std::string, std::less<>>> read_optional_inputs(const config::Node& node) {
  SERIN_TRY(const auto names, read_list<std::string>(node, "names of inputs", [](const config::Node& item) { return item.text(); }));
  return std::set<std::string, std::less<>>(names.begin(), names.end());
}

Result<EnsembleSettings> read_ensemble(const config::Node& node) {
  SERIN_CHECK(node.allow_only({"steps", "inputs", "outputs"}));
  EnsembleSettings ensemble;
  SERIN_TRY(const config::Node steps, node.at("steps"));
  SERIN_TRY(ensemble.steps, read_list<EnsembleStep>(steps, "steps: {model, inputs, outputs}", read_step));
  if (const auto inputs = node.find("inputs")) {
    SERIN_TRY(ensemble.inputs, read_list<protocol::TensorSpec>(*inputs, "names of tensors", read_tensor_name));
  }
  if (const auto outputs = node.find("outputs")) {
    SERIN_TRY(ensemble.outputs, read_list<protocol::TensorSpec>(*outputs, "names of tensors", read_tensor_name));
  }
  return ensemble;
}

Result<EnsembleSettings> read_ocr_ensemble(const config::Node& node, const std::string& folder) {
  EnsembleSettings ensemble;
  SERIN_TRY(ensemble.ocr, steps::read_ocr(node, [&](const std::string& name) { return file_of_model(folder, "", name); }));
  for (const char* const part : {"detector", "recognizer"}) {
    SERIN_TRY(const config::Node model, node.at(part));
    EnsembleStep& step = ensemble.steps.emplace_back();
    SERIN_TRY(const config::Node name, model.at("model"));
    SERIN_TRY(step.model, name.text());
    SERIN_TRY(step.version, model.text("version", ""));
  }
  return ensemble;
}

Result<SequenceSettings> read_sequences(const config::Node& node, const std::string& folder) {
  SERIN_CHECK(node.allow_only({"strategy", "max_candidates", "idle", "controls", "state"}));
  SequenceSettings sequences;
  SERIN_TRY(const std::string strategy, node.text("strategy", "direct"));
  if (strategy != "direct" && strategy != "oldest") return node.at("strategy")->error("must be direct or oldest, not '" + strategy + "'");
  if (strategy == "oldest") {
    SERIN_TRY(sequences.max_candidates, node.integer("max_candidates", 1, 1'000'000, 0));
    if (sequences.max_candidates == 0)
      return node.at("strategy")->error("max_candidates is missing: the sequences that each instance has under way");
  } else if (const auto candidates = node.find("max_candidates")) {
    return candidates->error("is read by 'strategy: oldest' only");
  }
  SERIN_TRY(sequences.idle, node.duration("idle", sequences.idle));
  if (const auto controls = node.find("controls")) {
    if (!controls->is_map()) return controls->error("must be a map from inputs to {kind: start, end, ready or id}");
    for (const std::string& input : controls->keys()) {
      SERIN_TRY(const config::Node each, controls->at(input));
      SERIN_TRY(SequenceControl control, read_control(each, input));
      sequences.controls.push_back(std::move(control));
    }
  }
  if (const auto states = node.find("state")) {
    SERIN_TRY(sequences.states,
              read_list<SequenceState>(*states, "{input, output}", [&](const config::Node& item) { return read_state(item, folder); }));
  }
  return sequences;
}

}  // namespace serin::serving
