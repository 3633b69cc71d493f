// proto.cc: which field of which message is which. The numbers are those of TensorFlow's .proto files.

#include "runtime/formats/tensorflow/proto.h"

#include <fmt/format.h>

#include <algorithm>

namespace serin::formats::tf {
namespace {

using wire::Message;

Attr read_attr(Message in);

std::string_view function_name(Message in) {
  std::string_view name;
  while (in.next())
    if (in.field() == 1) name = in.text();
  return name;
}

/// AttrValue.ListValue has the field numbers of AttrValue, but for functions.
std::vector<Attr> read_list(Message in) {
  std::vector<Attr> list;
  const auto add = [&list]() -> Attr& { return list.emplace_back(); };
  while (in.next()) {
    switch (in.field()) {
      case 2: add().text = in.chars(); break;
      case 3:
      case 5:
      case 6: in.each_integer([&](int64_t value) { add().integer = value; }); break;
      case 4: in.each_fixed<float>([&](float value) { add().number = value; }); break;
      case 7: add().shape = read_shape(in.message("TensorShapeProto")); break;
      case 8: add().tensor = in.bytes(); break;
      case 9: add().function = function_name(in.message("NameAttrList")); break;
      default: break;
    }
  }
  return list;
}

Attr read_attr(Message in) {
  Attr attr;
  while (in.next()) {
    switch (in.field()) {
      case 1: attr.list = read_list(in.message("AttrValue.ListValue")); break;
      case 2: attr.text = in.chars(); break;
      case 3:
      case 5:
      case 6: attr.integer = in.integer(); break;
      case 4: attr.number = in.number(); break;
      case 7: attr.shape = read_shape(in.message("TensorShapeProto")); break;
      case 8: attr.tensor = in.bytes(); break;
      case 10: attr.function = function_name(in.message("NameAttrList")); break;
      default: break;
    }
  }
  return attr;
}

/// An entry of a map: field 1 is the key, field 2 the value.
template <class Read>
void read_entry(Message in, Read&& read) {
  std::string_view key;
  std::optional<Message> value;
  while (in.next()) {
    if (in.field() == 1) key = in.once().text();
    if (in.field() == 2) value = in.once().message("map entry");
  }
  if (value) read(key, *value);
}

/// The same for maps of strings.
void read_text_entry(Message in, std::map<std::string_view, std::string_view>& map) {
  std::string_view key, value;
  while (in.next()) {
    if (in.field() == 1) key = in.text();
    if (in.field() == 2) value = in.text();
  }
  map.emplace(key, value);
}

NodeDef read_node(Message in) {
  NodeDef node;
  while (in.next()) {
    switch (in.field()) {
      case 1: node.name = in.once().text(); break;
      case 2: node.op = in.once().text(); break;
      case 3: node.inputs.push_back(in.text()); break;
      case 5:
        read_entry(in.message("NodeDef.attr"), [&](std::string_view key, Message value) {
          if (!key.starts_with('_')) node.attrs.emplace(key, read_attr(value));
        });
        break;
      default: break;
    }
  }
  return node;
}

std::string_view argument_name(Message in) {
  std::string_view name;
  while (in.next())
    if (in.field() == 1) name = in.text();
  return name;
}

void read_function_signature(Message in, FunctionDef& function) {
  while (in.next()) {
    switch (in.field()) {
      case 1: function.name = in.once().text(); break;
      case 2: function.arguments.push_back(argument_name(in.message("ArgDef"))); break;
      case 3: function.results.push_back(argument_name(in.message("ArgDef"))); break;
      default: break;
    }
  }
}

FunctionDef read_function(Message in) {
  FunctionDef function;
  while (in.next()) {
    switch (in.field()) {
      case 1: read_function_signature(in.once().message("OpDef"), function); break;
      case 3: function.nodes.push_back(read_node(in.message("NodeDef"))); break;
      case 4: read_text_entry(in.message("FunctionDef.ret"), function.returns); break;
      default: break;
    }
  }
  return function;
}

void read_graph(Message in, MetaGraph& graph) {
  while (in.next()) {
    if (in.field() == 1) graph.nodes.push_back(read_node(in.message("NodeDef")));
    if (in.field() != 2) continue;
    Message library = in.message("FunctionDefLibrary");
    while (library.next())
      if (library.field() == 1) graph.functions.push_back(read_function(library.message("FunctionDef")));
  }
}

TensorInfo read_tensor_info(Message in) {
  TensorInfo info;
  while (in.next()) {
    switch (in.field()) {
      case 1: info.name = in.text(); break;
      case 2: info.dtype = in.integer(); break;
      case 3: info.shape = read_shape(in.message("TensorShapeProto")); break;
      default: break;
    }
  }
  return info;
}

SignatureDef read_signature(Message in) {
  SignatureDef signature;
  while (in.next()) {
    if (in.field() == 3) signature.method = in.text();
    if (in.field() != 1 && in.field() != 2) continue;
    auto& map = in.field() == 1 ? signature.inputs : signature.outputs;
    read_entry(in.message("SignatureDef"), [&map](std::string_view key, Message value) { map.emplace(key, read_tensor_info(value)); });
  }
  return signature;
}

/// Nodes of the collections that say what to run after loading (TensorFlow 1 has two names for it).
void read_collection(std::string_view key, Message in, MetaGraph& graph) {
  if (key != "saved_model_main_op" && key != "legacy_init_op") return;
  while (in.next()) {
    if (in.field() != 1) continue;
    Message list = in.message("NodeList");
    while (list.next())
      if (list.field() == 1) graph.init_ops.push_back(list.text());
  }
}

void read_asset(Message in, MetaGraph& graph) {
  std::string_view tensor, file;
  while (in.next()) {
    if (in.field() == 1) tensor = read_tensor_info(in.message("TensorInfo")).name;
    if (in.field() == 2) file = in.text();
  }
  graph.assets.emplace(tensor, file);
}

std::vector<std::string_view> read_tags(Message in) {
  std::vector<std::string_view> tags;
  while (in.next()) {
    if (in.field() != 1) continue;
    Message info = in.message("MetaInfoDef");
    while (info.next())
      if (info.field() == 4) tags.push_back(info.text());
  }
  return tags;
}

MetaGraph read_meta_graph(Message in) {
  MetaGraph graph;
  while (in.next()) {
    switch (in.field()) {
      case 2: read_graph(in.message("GraphDef"), graph); break;
      case 3: {
        Message saver = in.message("SaverDef");
        while (saver.next()) {
          if (saver.field() == 1) graph.filename_tensor = saver.text();
          if (saver.field() == 3) graph.restore_op = saver.text();
        }
        break;
      }
      case 4:
        read_entry(in.message("MetaGraphDef.collection_def"),
                   [&graph](std::string_view key, Message value) { read_collection(key, value, graph); });
        break;
      case 5:
        read_entry(in.message("MetaGraphDef.signature_def"), [&graph](std::string_view key, Message value) {
          if (!graph.signatures.emplace(key, read_signature(value)).second) value.fail(fmt::format("a second signature '{}'", key));
        });
        break;
      case 6: read_asset(in.message("AssetFileDef"), graph); break;
      default: break;
    }
  }
  return graph;
}

}  // namespace

PartialShape read_shape(wire::Message in) {
  std::vector<int64_t> dims;
  bool unknown = false;
  while (in.next()) {
    if (in.field() == 3) unknown = in.integer() != 0;
    if (in.field() != 2) continue;
    int64_t size = 0;
    Message dim = in.message("TensorShapeProto.Dim");
    while (dim.next())
      if (dim.field() == 1) size = dim.integer();
    dims.push_back(size);
  }
  return unknown ? std::nullopt : PartialShape(std::move(dims));
}

MetaGraph read_saved_model(wire::Message in) {
  std::optional<Message> chosen;
  bool serves = false;
  size_t graphs = 0;
  while (in.next()) {
    if (in.field() != 2) continue;
    const Message graph = in.message("MetaGraphDef");
    ++graphs;
    std::vector<std::string_view> tags = read_tags(graph);
    const bool fits = std::ranges::find(tags, "serve") != tags.end();
    if (!chosen || (fits && (!serves || tags.size() == 1))) chosen = graph;
    serves |= fits;
    if (in.decoding().error) return {};
  }
  if (in.decoding().error) return {};
  MetaGraph graph;
  if (!chosen || (graphs > 1 && !serves)) {
    in.fail(chosen ? "has several graphs, and none with the tag 'serve'" : "has no graph");
    return graph;
  }
  graph = read_meta_graph(*chosen);
  graph.tags = read_tags(*chosen);
  return graph;
}

}  // namespace serin::formats::tf
