// model_import.cc: config.json: layers with their calls, and the tensors that each call reads: [layer, call, output].
//
// A layer that is called several times has several nodes with the same weights. A model may be a layer of another. Calls are followed with a stack of their own, as
// models may be deep; only models in models recurse, to a limit.

#include "runtime/formats/keras/model_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/formats/keras/names.h"

namespace serin::formats::keras {
namespace {

constexpr int kMostModels = 32;  // in each other
constexpr size_t kMostLayers = 200'000;

bool is_model(std::string_view class_name) { return class_name == "Functional" || class_name == "Model" || class_name == "Sequential"; }

Error bad_model(std::string_view problem) { return {Code::kCorrupt, fmt::format("config.json: {}", problem)}; }

/// A tensor by its place: layer, call, output.
struct Place {
  std::string layer;
  int64_t call = 0, output = 0;
};

std::optional<Place> place_of(Json triple) {
  if (!triple.is_array() || triple.size() < 3) return std::nullopt;
  std::array<Json, 3> parts;
  size_t i = 0;
  for (const Json& part : triple.items()) {
    if (i == 3) break;
    parts[i++] = part;
  }
  const auto layer = parts[0].text();
  const auto call = parts[1].integer(), output = parts[2].integer();
  if (!layer || !call || !output || *call < 0 || *output < 0) return std::nullopt;
  return Place{*layer, *call, *output};
}

/// The places in input_layers or output_layers: one, a list, or a dictionary. With the key of each, where there is one.
void collect_places(Json value, const std::string& key, std::vector<std::pair<std::string, Place>>& places) {
  if (auto place = place_of(value)) {
    places.emplace_back(key, std::move(*place));
    return;
  }
  for (const Json& each : value.items()) collect_places(each, key, places);
  for (const auto& [own, each] : value.members()) collect_places(each, own, places);
}

/// The tensors among the arguments of a call.
Status collect_tensors(Json value, std::vector<Place>& places) {
  if (value["class_name"].text_or("") == "__keras_tensor__") {
    auto place = place_of(value["config"]["keras_history"]);
    if (!place) return bad_model("a tensor without a 'keras_history'");
    places.push_back(std::move(*place));
    return {};
  }
  for (const Json& each : value.items()) SERIN_CHECK(collect_tensors(each, places));
  for (const auto& [key, each] : value.members()) SERIN_CHECK(collect_tensors(each, places));
  return {};
}

/// A policy that is one type, or two: for computing and for weights.
bool is_plain_policy(Json policy) {
  const std::string class_name = policy["class_name"].text_or("");
  return !policy.is_object() || class_name == "DTypePolicy" || class_name == "FloatDTypePolicy";
}

/// Letters, digits and underscores, so that a symbol can be typed on a command line.
std::string symbol_word(std::string_view text) {
  std::string word;
  for (const char c : text) word += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return word;
}

}  // namespace

std::vector<std::string> ModelImport::unsupported_layers(Json model) {
  std::vector<std::string> unsupported;
  std::vector<std::pair<Json, int>> open = {{model, 0}};
  while (!open.empty()) {
    const auto [each, depth] = open.back();
    open.pop_back();
    for (const Json& layer : each["config"]["layers"].items()) {
      const std::string class_name = layer["class_name"].text_or("?"), module = layer["module"].text_or("");
      const std::string name = layer["name"].text_or(layer["config"]["name"].text_or("?"));
      const bool own = module == "keras" || module.starts_with("keras.");
      if (own && is_model(class_name)) {
        if (depth < kMostModels) open.emplace_back(layer, depth + 1);
        continue;
      }
      if (own && (class_name == "InputLayer" || find_layer(module, class_name))) continue;
      unsupported.push_back(own ? fmt::format("'{}' ({})", name, class_name)
                                : fmt::format("'{}' ({}, a class that is not of Keras)", name, class_name));
    }
  }
  return unsupported;
}

Result<std::vector<ModelImport::Entry>> ModelImport::entries_of(Json model, const std::string& folder, bool sequential) {
  std::vector<Entry> entries;
  std::map<std::string, int> used;
  const Json layers = model["config"]["layers"];
  if (!layers.is_array() || layers.size() > kMostLayers) return bad_model("a model without layers, or with too many");
  for (const Json& layer : layers.items()) {
    Entry entry{layer["name"].text_or(layer["config"]["name"].text_or("")), layer["class_name"].text_or(""), layer["module"].text_or(""),
                "", layer};
    if (entry.name.empty() || entry.class_name.empty()) return bad_model("a layer without a name or a class");
    const bool counts = !is_operation(entry.module) && !(sequential && entry.class_name == "InputLayer");
    if (counts) {  // names are of classes, with numbers: dense, dense_1
      std::string own = snake_case(entry.class_name);
      const auto found = used.find(own);
      if (found == used.end())
        used.emplace(own, 0);
      else
        own = fmt::format("{}_{}", own, ++found->second);
      entry.folder = fmt::format("{}layers/{}/", folder, own);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<Tensor> ModelImport::add_input(const std::string& name, Json shape, Json dtype) {
  const std::string type_name = dtype.is_object() ? dtype["config"]["name"].text_or("?") : dtype.text_or("float32");
  graph::Type type{graph::ValueKind::kTensor, dtype_named(type_name), graph::Dims()};
  if (type.dtype == DType::kUndefined) return Error{Code::kUnsupported, fmt::format("input '{}' has dtype '{}'", name, type_name)};
  if (!shape.is_array() || shape.size() > Shape::kMaxRank) return Error{Code::kUnsupported, fmt::format("input '{}' has no shape", name)};
  size_t axis = 0;
  for (const Json& size : shape.items()) {
    const auto number = size.integer();
    if ((!number && !size.is_null()) || (number && *number < 0)) return bad_model(fmt::format("input '{}' has a size that is none", name));
    if (number) {
      type.shape->emplace_back(*number);
    } else {
      std::string symbol = axis == 0 ? "batch" : fmt::format("{}_d{}", symbol_word(name), axis);
      while (axis > 0 && !symbols_.insert(symbol).second) symbol += "_";
      type.shape->push_back(graph::Dim::symbol(symbol));
    }
    ++axis;
  }
  for (const ValueId id : shared_.scope.graph().inputs())
    if (shared_.scope.graph().value(id).name == name) return bad_model(fmt::format("two inputs '{}'", name));
  const DType narrow = narrow_named(type_name);
  return Tensor{.value = tf::plain_value(shared_.scope.graph().add_input(name, std::move(type))), .declared = narrow};
}

Result<std::vector<Tensor>> ModelImport::call_layer(const Entry& entry, std::vector<Tensor> inputs, Layer::Call call) {
  if (++calls_ > most_calls_) return Error{Code::kTooLarge, fmt::format("more than {} calls of layers", most_calls_)};
  if (is_model(entry.class_name)) {
    SERIN_TRY(std::vector<Output> outputs, call_model(entry.json, entry.folder, &inputs));
    std::vector<Tensor> tensors;
    tensors.reserve(outputs.size());
    for (Output& output : outputs) tensors.push_back(std::move(output.tensor));
    return tensors;
  }
  const LayerRow* const row = find_layer(entry.module, entry.class_name);
  if (!row) return Error{Code::kUnsupported, fmt::format("layer '{}' ({}) is not supported", entry.name, entry.class_name)};
  const Json policy = entry.json["config"]["dtype"];
  call.operation = is_operation(entry.module);
  if (!call.operation && !is_plain_policy(policy))
    return Error{Code::kUnsupported, fmt::format("layer '{}' ({}): dtype policy '{}' ({})", entry.name, entry.class_name,
                                                 policy["config"]["name"].text_or("?"), policy["class_name"].text_or("?"))};
  graph::Builder& builder = shared_.scope.builder();
  builder.start(entry.name);
  Layer layer(shared_, entry.class_name, entry.json["config"], entry.folder, std::move(inputs), std::move(call));
  row->import(layer);
  if (builder.error()) {
    const std::string place = fmt::format("layer '{}' ({})", entry.name, entry.class_name), prefix = fmt::format("node '{}': ", entry.name);
    Error error = *builder.error();
    if (error.message.starts_with(prefix)) error.message.erase(0, prefix.size());
    return error.in(place);
  }
  std::vector<Tensor> outputs = layer.take_outputs();
  for (Tensor& output : outputs) output.declared = layer.declared();
  return outputs;
}

Result<std::vector<ModelImport::Output>> ModelImport::call_model(Json model, const std::string& folder, const std::vector<Tensor>* inputs) {
  if (depth_ >= kMostModels) return bad_model(fmt::format("models in models, more than {} deep", kMostModels));
  ++depth_;
  auto outputs =
      model["class_name"].text_or("") == "Sequential" ? call_sequential(model, folder, inputs) : call_functional(model, folder, inputs);
  --depth_;
  return outputs;
}

Result<std::vector<ModelImport::Output>> ModelImport::call_sequential(Json model, const std::string& folder,
                                                                      const std::vector<Tensor>* inputs) {
  SERIN_TRY(const std::vector<Entry> entries, entries_of(model, folder, /*sequential=*/true));
  Tensor tensor;
  if (inputs) {
    if (inputs->size() != 1) return bad_model("a Sequential is called with other than one tensor");
    tensor = inputs->front();
  } else if (!entries.empty() && entries.front().class_name == "InputLayer") {
    const Json config = entries.front().json["config"];
    SERIN_TRY(tensor, add_input(entries.front().name, config["batch_shape"] ? config["batch_shape"] : config["batch_input_shape"],
                                config["dtype"]));
  } else {
    Json shape = model["config"]["build_input_shape"];
    if (!shape || shape.is_null()) shape = model["build_config"]["input_shape"];
    if (!shape || shape.is_null())
      return Error{Code::kUnsupported, "the model was saved before its input was known: call it once, or give it an Input"};
    SERIN_TRY(tensor, add_input("input", shape, Json()));
  }
  std::string name = "output";
  for (const Entry& entry : entries) {
    if (entry.class_name == "InputLayer") continue;
    SERIN_TRY(std::vector<Tensor> results, call_layer(entry, {tensor}, {}));
    if (results.size() != 1)
      return Error{Code::kUnsupported, fmt::format("layer '{}' gives {} tensors in a Sequential", entry.name, results.size())};
    tensor = std::move(results.front());
    name = entry.name;
  }
  return std::vector<Output>{{name, tensor}};
}

/// One call of a functional model.
class ModelImport::Functional {
 public:
  Functional(ModelImport& import, std::vector<Entry> entries) : import_(import), entries_(std::move(entries)) {}

  Status index() {
    for (size_t i = 0; i < entries_.size(); ++i)
      if (!by_name_.emplace(entries_[i].name, i).second) return bad_model(fmt::format("two layers '{}'", entries_[i].name));
    nodes_.resize(entries_.size());
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].class_name == "InputLayer") nodes_[i].resize(1);
      for (const Json& call : entries_[i].json["inbound_nodes"].items()) {
        Node node;
        node.call.json = call;
        node.call.positional = 0;
        if (!call.is_object())
          return Error{Code::kUnsupported,
                       fmt::format("layer '{}' has calls as Keras 2 wrote them: load and save the model with Keras 3", entries_[i].name)};
        SERIN_CHECK(collect_tensors(call["args"], node.reads));
        node.call.positional = node.reads.size();
        for (const auto& [name, value] : call["kwargs"].members()) {
          const size_t before = node.reads.size();
          SERIN_CHECK(collect_tensors(value, node.reads));
          for (size_t read = before; read < node.reads.size(); ++read) node.call.named.emplace_back(name, read);
        }
        nodes_[i].push_back(std::move(node));
      }
    }
    return {};
  }

  Status set(const Place& place, Tensor tensor) {
    SERIN_TRY(Node* const node, find(place));
    if (place.output != 0 || !node->reads.empty()) return bad_model(fmt::format("'{}' is no input", place.layer));
    node->outputs = {std::move(tensor)};
    node->done = true;
    return {};
  }

  /// Calls what it needs.
  Result<Tensor> value(const Place& wanted) {
    struct Open {
      Place place;
      size_t next = 0;
    };
    std::vector<Open> stack = {{wanted}};
    while (!stack.empty()) {
      Open& top = stack.back();
      SERIN_TRY(Node* const node, find(top.place));
      if (node->done) {
        stack.pop_back();
        continue;
      }
      if (top.next == 0) {
        if (node->open) return bad_model(fmt::format("layer '{}' depends on itself", top.place.layer));
        node->open = true;
      }
      if (top.next < node->reads.size()) {
        const Place read = node->reads[top.next++];
        stack.push_back({read});  // may move the stack, so that `top` is not used again
        continue;
      }
      const Entry& entry = entries_[by_name_.find(top.place.layer)->second];
      if (entry.class_name == "InputLayer") return bad_model(fmt::format("'{}' is no input of the model", entry.name));
      std::vector<Tensor> inputs;
      for (const Place& read : node->reads) {
        SERIN_TRY(Tensor tensor, result(read));
        inputs.push_back(std::move(tensor));
      }
      SERIN_TRY(node->outputs, import_.call_layer(entry, std::move(inputs), node->call));
      node->done = true;
      node->open = false;
      stack.pop_back();
    }
    return result(wanted);
  }

  const Entry* entry(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &entries_[found->second];
  }

 private:
  struct Node {
    Layer::Call call;
    std::vector<Place> reads;
    std::vector<Tensor> outputs;
    bool done = false, open = false;
  };

  Result<Node*> find(const Place& place) {
    const auto layer = by_name_.find(place.layer);
    if (layer == by_name_.end()) return bad_model(fmt::format("reads layer '{}', which does not exist", place.layer));
    auto& nodes = nodes_[layer->second];
    if (static_cast<uint64_t>(place.call) >= nodes.size())
      return bad_model(fmt::format("reads call {} of layer '{}', which has {}", place.call, place.layer, nodes.size()));
    return &nodes[static_cast<size_t>(place.call)];
  }

  Result<Tensor> result(const Place& place) {
    SERIN_TRY(const Node* const node, find(place));
    if (static_cast<uint64_t>(place.output) >= node->outputs.size())
      return bad_model(fmt::format("reads output {} of layer '{}', which has {}", place.output, place.layer, node->outputs.size()));
    return node->outputs[static_cast<size_t>(place.output)];
  }

  ModelImport& import_;
  const std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> by_name_;
  std::vector<std::vector<Node>> nodes_;  // calls, by layer
};

Result<std::vector<ModelImport::Output>> ModelImport::call_functional(Json model, const std::string& folder,
                                                                      const std::vector<Tensor>* inputs) {
  SERIN_TRY(std::vector<Entry> entries, entries_of(model, folder, /*sequential=*/false));
  Functional functional(*this, std::move(entries));
  SERIN_CHECK(functional.index());
  std::vector<std::pair<std::string, Place>> in, out;
  collect_places(model["config"]["input_layers"], "", in);
  collect_places(model["config"]["output_layers"], "", out);
  if (in.empty() || out.empty()) return bad_model("a model without inputs or outputs");
  if (inputs && inputs->size() != in.size())
    return bad_model(fmt::format("a model with {} inputs is called with {}", in.size(), inputs->size()));
  for (size_t i = 0; i < in.size(); ++i) {
    const Place& place = in[i].second;
    if (inputs) {
      SERIN_CHECK(functional.set(place, (*inputs)[i]));
      continue;
    }
    const Entry* const entry = functional.entry(place.layer);
    if (!entry) return bad_model(fmt::format("input '{}' does not exist", place.layer));
    const Json config = entry->json["config"];
    if (config["sparse"].boolean().value_or(false) || config["ragged"].boolean().value_or(false))
      return Error{Code::kUnsupported, fmt::format("input '{}' is sparse or ragged", place.layer)};
    SERIN_TRY(Tensor tensor, add_input(entry->name, config["batch_shape"], config["dtype"]));
    SERIN_CHECK(functional.set(place, std::move(tensor)));
  }
  std::vector<Output> outputs;
  for (const auto& [key, place] : out) {
    SERIN_TRY(Tensor tensor, functional.value(place));
    outputs.push_back({key.empty() ? place.layer : key, std::move(tensor)});
  }
  return outputs;
}

Status ModelImport::run(Json model) {
  SERIN_TRY(const std::vector<Output> outputs, call_model(model, "", nullptr));
  graph::Graph& graph = shared_.scope.graph();
  graph::Builder& builder = shared_.scope.builder();
  std::vector<ValueId> ids;
  std::vector<std::string> names;
  for (const Output& output : outputs) {
    std::string name = output.name;
    for (int number = 2; std::ranges::find(names, name) != names.end(); ++number) name = fmt::format("{}_{}", output.name, number);
    builder.start(name);
    ValueId id = shared_.scope.plain(*output.tensor.value);
    if (id == kNone) return bad_model(fmt::format("output '{}' is no tensor", name));
    if (output.tensor.declared != DType::kUndefined && builder.dtype(id) == DType::kFloat32) id = builder.cast(id, output.tensor.declared);
    const bool own =
        graph.constant(id) || std::ranges::find(graph.inputs(), id) != graph.inputs().end() || std::ranges::find(ids, id) != ids.end();
    if (own) id = builder.add(Op::kIdentity, {id});
    ids.push_back(id);
    names.push_back(name);
  }
  if (builder.error()) return *builder.error();
  graph.set_outputs(std::move(ids));
  graph.set_output_names(std::move(names));
  return {};
}

}  // namespace serin::formats::keras
