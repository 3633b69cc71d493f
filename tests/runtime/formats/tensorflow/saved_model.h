// saved_model.h: writes small SavedModels, field by field, for tests.
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/wire_writer.h"
#include "runtime/formats/tensorflow/crc32c.h"
#include "runtime/formats/tensorflow/savedmodel.h"

namespace serin::formats::tf::test {

using Shape = std::vector<int64_t>;

inline void write_i64(std::string& out, uint32_t field, int64_t value) {  // also zero
  wire::write_tag(out, field, 0);
  wire::write_varint(out, static_cast<uint64_t>(value));
}

inline std::string shape_proto(const Shape& shape) {
  std::string out;
  for (const int64_t size : shape) wire::write_message(out, 2, [&](std::string& dim) { write_i64(dim, 1, size); });
  return out;
}

/// A tensor of raw bytes.
template <class T>
std::string tensor_proto(int64_t dtype, const Shape& shape, const std::vector<T>& values) {
  std::string out;
  wire::write_integer(out, 1, dtype);
  wire::write_bytes(out, 2, shape_proto(shape));
  wire::write_bytes(out, 4, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  return out;
}

// Values of attributes.
inline std::string attr_type(int64_t dtype) {
  std::string out;
  write_i64(out, 6, dtype);
  return out;
}
inline std::string attr_int(int64_t value) {
  std::string out;
  write_i64(out, 3, value);
  return out;
}
inline std::string attr_text(std::string_view text) {
  std::string out;
  wire::write_bytes(out, 2, text);
  return out;
}
inline std::string attr_tensor(const std::string& tensor) {
  std::string out;
  wire::write_bytes(out, 8, tensor);
  return out;
}
inline std::string attr_function(std::string_view name) {
  std::string out;
  wire::write_message(out, 10, [&](std::string& list) { wire::write_text(list, 1, name); });
  return out;
}
inline std::string attr_ints(const std::vector<int64_t>& values) {
  std::string out;
  wire::write_message(out, 1, [&](std::string& list) {
    for (const int64_t value : values) write_i64(list, 3, value);
  });
  return out;
}

struct Node {
  std::string name, op;
  std::vector<std::string> inputs;
  std::map<std::string, std::string> attrs;

  std::string proto() const {
    std::string out;
    wire::write_text(out, 1, name);
    wire::write_text(out, 2, op);
    for (const std::string& input : inputs) wire::write_bytes(out, 3, input);
    for (const auto& [key, value] : attrs) {
      wire::write_message(out, 5, [&](std::string& entry) {
        wire::write_text(entry, 1, key);
        wire::write_bytes(entry, 2, value);
      });
    }
    return out;
  }
};

inline Node constant(std::string name, int64_t dtype, const std::string& tensor) {
  return {std::move(name), "Const", {}, {{"dtype", attr_type(dtype)}, {"value", attr_tensor(tensor)}}};
}
inline Node integers(std::string name, const std::vector<int32_t>& values) {
  return constant(std::move(name), 3, tensor_proto<int32_t>(3, {static_cast<int64_t>(values.size())}, values));
}
inline Node floats(std::string name, const Shape& shape, const std::vector<float>& values) {
  return constant(std::move(name), 1, tensor_proto<float>(1, shape, values));
}
inline Node placeholder(std::string name) { return {std::move(name), "Placeholder", {}, {{"dtype", attr_type(1)}}}; }

struct Function {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<Node> nodes;
  std::vector<std::pair<std::string, std::string>> results;  ///< name, edge

  std::string proto() const {
    std::string out;
    wire::write_message(out, 1, [&](std::string& signature) {
      wire::write_text(signature, 1, name);
      for (const std::string& argument : arguments)
        wire::write_message(signature, 2, [&](std::string& arg) { wire::write_text(arg, 1, argument); });
      for (const auto& [result, edge] : results)
        wire::write_message(signature, 3, [&](std::string& arg) { wire::write_text(arg, 1, result); });
    });
    for (const Node& node : nodes) wire::write_bytes(out, 3, node.proto());
    for (const auto& [result, edge] : results) {
      wire::write_message(out, 4, [&](std::string& entry) {
        wire::write_text(entry, 1, result);
        wire::write_text(entry, 2, edge);
      });
    }
    return out;
  }
};

struct Port {
  std::string key, tensor;
  int64_t dtype;
  Shape shape;
};

struct Model {
  std::vector<Node> nodes;
  std::vector<Function> functions;
  std::vector<Port> inputs, outputs;
  std::string signature = "serving_default", method;
  struct Signature {
    std::string name, method;
    std::vector<Port> inputs, outputs;
  };
  std::vector<Signature> more_signatures;
  std::string restore_op, init_op;
  std::vector<std::pair<std::string, std::string>> assets;  ///< tensor, file
  std::map<std::string, std::string> files;                 ///< more files, by their path in the folder

  std::string graph() const {
    std::string out;
    for (const Node& node : nodes) wire::write_bytes(out, 1, node.proto());
    wire::write_message(out, 2, [&](std::string& library) {
      for (const Function& function : functions) wire::write_bytes(library, 1, function.proto());
    });
    return out;
  }
  static void write_port(std::string& out, uint32_t field, const Port& port) {
    wire::write_message(out, field, [&](std::string& entry) {
      wire::write_text(entry, 1, port.key);
      wire::write_message(entry, 2, [&](std::string& info) {
        wire::write_text(info, 1, port.tensor);
        wire::write_integer(info, 2, port.dtype);
        wire::write_bytes(info, 3, shape_proto(port.shape));
      });
    });
  }
  static void write_signature(std::string& meta, const Signature& which) {
    wire::write_message(meta, 5, [&](std::string& entry) {
      wire::write_text(entry, 1, which.name);
      wire::write_message(entry, 2, [&](std::string& ports) {
        for (const Port& port : which.inputs) write_port(ports, 1, port);
        for (const Port& port : which.outputs) write_port(ports, 2, port);
        wire::write_text(ports, 3, which.method);
      });
    });
  }
  std::string proto() const {
    std::string out;
    wire::write_integer(out, 1, 1);
    wire::write_message(out, 2, [&](std::string& meta) {
      wire::write_message(meta, 1, [](std::string& info) { wire::write_text(info, 4, "serve"); });
      wire::write_bytes(meta, 2, graph());
      if (!restore_op.empty()) wire::write_message(meta, 3, [&](std::string& saver) { wire::write_text(saver, 3, restore_op); });
      if (!init_op.empty()) {
        wire::write_message(meta, 4, [&](std::string& entry) {
          wire::write_text(entry, 1, "saved_model_main_op");
          wire::write_message(entry, 2, [&](std::string& collection) {
            wire::write_message(collection, 1, [&](std::string& list) { wire::write_text(list, 1, init_op); });
          });
        });
      }
      write_signature(meta, {signature, method, inputs, outputs});
      for (const Signature& each : more_signatures) write_signature(meta, each);
      for (const auto& [tensor, file] : assets) {
        wire::write_message(meta, 6, [&](std::string& asset) {
          wire::write_message(asset, 1, [&](std::string& info) { wire::write_text(info, 1, tensor); });
          wire::write_text(asset, 2, file);
        });
      }
    });
    return out;
  }
};

/// y = op(x), with x of [batch, 4]; more nodes may be added.
inline Model model_of(const std::vector<Node>& nodes, const std::string& output = "y") {
  Model model;
  model.nodes = {placeholder("x")};
  model.nodes.insert(model.nodes.end(), nodes.begin(), nodes.end());
  model.inputs = {{"x", "x:0", 1, {-1, 4}}};
  model.outputs = {{"y", output + ":0", 1, {-1, 4}}};
  return model;
}

// ---- the bundle ----

inline void append_fixed(std::string& out, uint32_t value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }

inline uint32_t checksum(std::string_view bytes) { return masked_crc32c({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}); }

inline std::string entry_proto(int64_t dtype, const Shape& shape, int64_t offset, int64_t size, uint32_t crc, int64_t shard = 0) {
  std::string out;
  wire::write_integer(out, 1, dtype);
  wire::write_bytes(out, 2, shape_proto(shape));
  wire::write_integer(out, 3, shard);
  wire::write_integer(out, 4, offset);
  wire::write_integer(out, 5, size);
  wire::write_tag(out, 6, 5);
  append_fixed(out, crc);
  return out;
}

/// A block of a table: entries whose keys are whole, and restart points.
inline std::string block_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string block;
  for (const auto& [key, value] : entries) {
    wire::write_varint(block, 0);
    wire::write_varint(block, key.size());
    wire::write_varint(block, value.size());
    block += key + value;
  }
  append_fixed(block, 0);
  append_fixed(block, 1);
  return block;
}

/// A table with one data block, as LevelDB writes it.
inline std::string table_around(const std::string& entries) {
  std::string out;
  const auto add_block = [&out](const std::string& block) {
    std::string handle;
    wire::write_varint(handle, out.size());
    wire::write_varint(handle, block.size());
    const std::string stored = block + '\0';
    out += stored;
    append_fixed(out, checksum(stored));
    return handle;
  };
  const std::string data = add_block(entries), meta = add_block(block_of({})), index = add_block(block_of({{"~", data}}));
  std::string footer = meta + index;
  footer.resize(40);
  const uint64_t magic = 0xdb4775248b80fb57;
  footer.append(reinterpret_cast<const char*>(&magic), sizeof magic);
  return out + footer;
}
inline std::string table_of(const std::vector<std::pair<std::string, std::string>>& entries) { return table_around(block_of(entries)); }

inline std::string header_proto(int64_t shards = 1) {
  std::string out;
  wire::write_integer(out, 1, shards);
  return out;
}

constexpr const char* kIndex = "variables/variables.index";
constexpr const char* kData = "variables/variables.data-00000-of-00001";

/// x * w with a variable w of four elements, restored as "w".
inline Model model_with_variable() {
  std::string names;
  wire::write_integer(names, 1, 7);
  wire::write_bytes(names, 2, shape_proto({1}));
  wire::write_bytes(names, 8, "w");
  Model model = model_of({{"w", "VarHandleOp", {}, {{"shared_name", attr_text("w")}}},
                          {"read", "ReadVariableOp", {"w"}, {}},
                          {"y", "Mul", {"x", "read"}, {}},
                          constant("names", 7, names),
                          {"restore", "RestoreV2", {"names", "names", "names"}, {}},
                          {"assign", "AssignVariableOp", {"w", "restore:0"}, {}},
                          {"restore_all", "NoOp", {"^assign"}, {}}});
  model.restore_op = "restore_all";
  const std::vector<float> values = {1, 2, 3, 4};
  const std::string bytes(reinterpret_cast<const char*>(values.data()), 16);
  model.files[kData] = bytes;
  model.files[kIndex] = table_of({{"", header_proto()}, {"w", entry_proto(1, {4}, 0, 16, checksum(bytes))}});
  return model;
}

/// A folder that is removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "serin_savedmodel_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  void write(const std::string& name, std::string_view bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }

 private:
  std::filesystem::path path_;
};

inline Result<graph::Graph> read(const Model& model, const SavedModelLimits& limits = {}, const SavedModelChoice& choice = {}) {
  const Folder folder;
  folder.write("saved_model.pb", model.proto());
  for (const auto& [name, bytes] : model.files) folder.write(name, bytes);
  return formats::read_saved_model(folder.file("saved_model.pb"), {}, limits, choice);
}

inline std::string error_of(const Model& model, const SavedModelLimits& limits = {}) {
  const auto graph = read(model, limits);
  return graph ? "it was read:\n" + graph::print(*graph) : graph.error().message;
}

}  // namespace serin::formats::tf::test
