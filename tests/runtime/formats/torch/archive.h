// archive.h: writes zip archives, with any flaw, and small programs of torch.export.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <boost/crc.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/formats/torch/torch.h"

namespace serin::formats::torch_test {

/// A file of these bytes, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes, const std::string& name = "model.pt2") {
    std::string pattern = (std::filesystem::temp_directory_path() / "serin-torch-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/" + name;
    write(bytes);
  }
  ~TemporaryFile() { std::filesystem::remove_all(folder_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  const std::string& path() const { return path_; }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_, path_;
};

inline std::string little(uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

/// An entry, and what the directory says of it.
struct ZipFile {
  std::string name, content;
  uint16_t method = 0, flags = 0;
  uint32_t mode = 0100644;
  std::optional<uint32_t> size = {}, offset = {}, checksum = {};
};

inline std::string zip(const std::vector<ZipFile>& files) {
  std::string bytes, directory;
  for (const ZipFile& file : files) {
    boost::crc_32_type crc;
    crc.process_bytes(file.content.data(), file.content.size());
    const auto size = static_cast<uint32_t>(file.content.size());
    const auto offset = static_cast<uint32_t>(bytes.size());
    const std::string middle =
        little(20, 2) + little(file.flags, 2) + little(file.method, 2) + little(0, 4) + little(file.checksum.value_or(crc.checksum()), 4);
    bytes += "PK\3\4" + middle + little(size, 4) + little(size, 4) + little(file.name.size(), 2) + little(0, 2) + file.name + file.content;
    directory += "PK\1\2" + little(3 << 8 | 20, 2) + middle + little(file.size.value_or(size), 4) + little(file.size.value_or(size), 4) +
                 little(file.name.size(), 2) + little(0, 2) + little(0, 2) + little(0, 2) + little(0, 2) +
                 little(uint64_t{file.mode} << 16, 4) + little(file.offset.value_or(offset), 4) + file.name;
  }
  const std::string count = little(files.size(), 2);
  return bytes + directory + "PK\5\6" + little(0, 2) + little(0, 2) + count + count + little(directory.size(), 4) +
         little(bytes.size(), 4) + little(0, 2);
}

/// The same with a 64-bit directory: sizes and offsets in extra fields, as archives of 4 GiB have them.
inline std::string zip64(const std::vector<ZipFile>& files) {
  std::string bytes, directory;
  for (const ZipFile& file : files) {
    boost::crc_32_type crc;
    crc.process_bytes(file.content.data(), file.content.size());
    const std::string middle = little(45, 2) + little(0, 2) + little(0, 2) + little(0, 4) + little(crc.checksum(), 4),
                      full = little(0xFFFFFFFF, 4);
    const std::string extra =
        little(1, 2) + little(24, 2) + little(file.content.size(), 8) + little(file.content.size(), 8) + little(bytes.size(), 8);
    bytes += "PK\3\4" + middle + full + full + little(file.name.size(), 2) + little(0, 2) + file.name + file.content;
    directory += "PK\1\2" + little(45, 2) + middle + full + full + little(file.name.size(), 2) + little(extra.size(), 2) + little(0, 2) +
                 little(0, 2) + little(0, 2) + little(0, 4) + full + file.name + extra;
  }
  const std::string count = little(files.size(), 8), at = little(bytes.size() + directory.size(), 8);
  const std::string end64 = "PK\6\6" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 4) + little(0, 4) + count + count +
                            little(directory.size(), 8) + little(bytes.size(), 8);
  const std::string none = little(0xFFFF, 2);
  return bytes + directory + end64 + "PK\6\7" + little(0, 4) + at + little(1, 4) + "PK\5\6" + little(0, 4) + none + none +
         little(0xFFFFFFFF, 4) + little(0xFFFFFFFF, 4) + little(0, 2);
}

inline std::string tensor(const std::string& name) { return fmt::format(R"({{"as_tensor": {{"name": "{}"}}}})", name); }
inline std::string meta(const std::string& sizes, int dtype = 7, const std::string& strides = "") {
  const std::string order = strides.empty() ? sizes : strides;
  return fmt::format(R"({{"dtype": {}, "sizes": [{}], "strides": [{}], "storage_offset": {{"as_int": 0}}, "layout": 7}})", dtype, sizes,
                     order);
}
inline std::string sizes(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += fmt::format(R"({}{{"as_int": {}}})", text.empty() ? "" : ", ", number);
  return text;
}

/// node("relu", "relu.default", {{"self", tensor("x")}})
inline std::string node(const std::string& name, const std::string& target,
                        const std::vector<std::pair<std::string, std::string>>& arguments) {
  std::string inputs;
  for (const auto& [key, value] : arguments)
    inputs += fmt::format(R"({}{{"name": "{}", "arg": {}, "kind": 1}})", inputs.empty() ? "" : ", ", key, value);
  return fmt::format(R"({{"target": "torch.ops.aten.{}", "inputs": [{}], "outputs": [{}], "metadata": {{}}}})", target, inputs,
                     tensor(name));
}

/// A program with input x f32[2,3], weight w f32[2,3] and these nodes.
struct TestProgram {
  std::vector<std::string> nodes;
  std::string output = "y";
  std::string version = R"({"major": 8, "minor": 17})";
  std::string x = meta(sizes({2, 3}));
  std::string declared = {};  ///< more of tensor_values: , "y": {...}
  std::string output_spec = {};

  std::string json() const {
    std::string list;
    for (const std::string& each : nodes) list += (list.empty() ? "" : ", ") + each;
    const std::string spec = output_spec.empty() ? fmt::format(R"({{"user_output": {{"arg": {}}}}})", tensor(output)) : output_spec;
    return fmt::format(R"({{"graph_module": {{"graph": {{"inputs": [{0}, {1}], "outputs": [{2}], "nodes": [{3}], "tensor_values":
        {{"x": {4}, "w": {5}{6}}}}}, "signature": {{"input_specs": [{{"parameter": {{"arg": {{"name": "w"}}, "parameter_name": "layer.w"}}}},
        {{"user_input": {{"arg": {1}}}}}], "output_specs": [{7}]}}}}, "schema_version": {8}}})",
                       tensor("w"), tensor("x"), tensor(output), list, x, meta(sizes({2, 3})), declared, spec, version);
  }
};

inline std::string weight_row(const std::string& how = meta(sizes({2, 3}), 7, sizes({3, 1})), const std::string& path = "weight_0",
                              const std::string& pickled = "false") {
  return fmt::format(R"({{"config": {{"layer.w": {{"path_name": "{}", "is_param": true, "use_pickle": {}, "tensor_meta": {}}}}}}})", path,
                     pickled, how);
}

inline std::vector<ZipFile> files_of(const std::string& program, const std::string& weights = weight_row(), size_t weight_bytes = 24) {
  return {{"m/archive_format", "pt2"},
          {"m/byteorder", "little"},
          {"m/models/model.json", program},
          {"m/data/weights/weight_0", std::string(weight_bytes, '\1')},
          {"m/data/weights/model_weights_config.json", weights},
          {"m/data/constants/model_constants_config.json", R"({"config": {}})"}};
}

inline Result<graph::Graph> read(const std::vector<ZipFile>& files) {
  const TemporaryFile file(zip(files));
  return read_torch(file.path());
}
inline Result<graph::Graph> read(const TestProgram& program) { return read(files_of(program.json())); }

inline const std::string kAdd = node("y", "add.Tensor", {{"self", tensor("x")}, {"other", tensor("w")}});

}  // namespace serin::formats::torch_test
