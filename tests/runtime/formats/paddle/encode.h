// encode.h: programs and parameters of Paddle by hand, in a folder that is removed at the end.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "runtime/formats/paddle/paddle.h"
#include "tests/runtime/base/protobuf_encoder.h"

namespace serin::formats {

using test::Encoder;
using Dims = std::vector<int64_t>;
using Words = std::vector<std::string>;

constexpr int64_t kF32 = 5, kI64 = 3;

// ProgramDesc, with the field numbers of framework.proto.

inline Encoder tensor_desc(int64_t type, const Dims& dims) {
  Encoder out;
  out.number(1, type);
  for (const int64_t dim : dims) out.number(2, dim);
  return out;
}

inline Encoder var(std::string_view name, const Dims& dims, bool persistable = false, int64_t type = kF32) {
  const Encoder lod = Encoder().message(1, tensor_desc(type, dims));
  return Encoder().bytes(1, name).message(2, Encoder().number(1, 7).message(3, lod)).number(3, persistable ? 1 : 0);
}

inline Encoder attribute(std::string_view name, int64_t value) { return Encoder().bytes(1, name).number(2, 0).number(3, value); }
inline Encoder real_attribute(std::string_view name, float value) { return Encoder().bytes(1, name).number(2, 1).real(4, value); }
inline Encoder attribute(std::string_view name, const Dims& values) {
  Encoder out;
  out.bytes(1, name).number(2, 3);
  for (const int64_t value : values) out.number(6, value);
  return out;
}
inline Encoder text_attribute(std::string_view name, std::string_view value) {
  return Encoder().bytes(1, name).number(2, 2).bytes(5, value);
}
inline Encoder block_attribute(int64_t block) { return Encoder().bytes(1, "sub_block").number(2, 8).number(12, block); }

using Slots = std::vector<std::pair<std::string, Words>>;

inline Encoder op(std::string_view type, const Slots& inputs, const Slots& outputs, const std::vector<Encoder>& attributes = {}) {
  Encoder out;
  for (const auto& [field, slots] : {std::pair(1U, &inputs), std::pair(2U, &outputs)}) {
    for (const auto& [name, values] : *slots) {
      Encoder slot;
      slot.bytes(1, name);
      for (const std::string& value : values) slot.bytes(2, value);
      out.message(field, slot);
    }
  }
  out.bytes(3, type);
  for (const Encoder& each : attributes) out.message(4, each);
  return out;
}

inline Encoder feed(std::string_view name, int64_t column = 0) {
  return op("feed", {{"X", {"feed"}}}, {{"Out", {std::string(name)}}}, {attribute("col", column)});
}
inline Encoder fetch(std::string_view name, int64_t column = 0) {
  return op("fetch", {{"X", {std::string(name)}}}, {{"Out", {"fetch"}}}, {attribute("col", column)});
}

inline Encoder block(const std::vector<Encoder>& vars, const std::vector<Encoder>& ops, int64_t index = 0) {
  Encoder out;
  out.number(1, index).number(2, index == 0 ? -1 : 0);
  for (const Encoder& each : vars) out.message(3, each);
  for (const Encoder& each : ops) out.message(4, each);
  return out;
}

inline std::string program(const std::vector<Encoder>& blocks, int64_t version = 2006002) {
  Encoder out;
  for (const Encoder& each : blocks) out.message(1, each);
  return out.message(4, Encoder().number(1, version)).str();
}

/// y = relu(x w), with w [2, 3].
inline std::string small_program(const std::vector<Encoder>& more_vars = {}, const std::vector<Encoder>& more_ops = {}) {
  std::vector<Encoder> vars{var("x", {-1, 2}), var("w", {2, 3}, true), var("m", {-1, 3}), var("y", {-1, 3})};
  std::vector<Encoder> ops{feed("x"), op("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"m"}}}),
                           op("relu", {{"X", {"m"}}}, {{"Out", {"y"}}})};
  vars.insert(vars.end(), more_vars.begin(), more_vars.end());
  ops.insert(ops.end(), more_ops.begin(), more_ops.end());
  ops.push_back(fetch("y"));
  return program({block(vars, ops)});
}

/// The same as PIR. `ops`: operations before the fetch, each with a comma behind it.
inline std::string small_pir(std::string_view ops = "", std::string_view version = "4", std::string_view fetched = "4") {
  const std::string f32 = R"("TT":{"#":"0.t_dtensor","D":[{"#":"0.t_f32"},)";
  return R"({"base_code":{"magic":"pir","version":)" + std::string(version) +
         R"(},"program":{"regions":[{"#":"region_0","blocks":[{"#":"block_0","args":[],"ops":[)" +
         R"({"#":"p","A":[0,1,1,"w"],"O":{"%":1,)" + f32 + R"([2,3],"NCHW",[],0]}}},)" +
         R"({"#":"1.data","A":[{"AT":{"#":"0.a_str","D":"x"},"N":"name"}],"I":[],"O":[{"%":2,)" + f32 + R"([-1,2],"NCHW",[],0]}}]},)" +
         R"({"#":"1.matmul","A":[],"I":[{"%":2},{"%":1}],"O":[{"%":3,)" + f32 + R"([-1,3],"NCHW",[],0]}}]},)" +
         R"({"#":"1.relu_","A":[],"I":[{"%":3}],"O":[{"%":4,)" + f32 + R"([-1,3],"NCHW",[],0]}}]},)" + std::string(ops) +
         R"({"#":"1.fetch","A":[{"AT":{"#":"0.a_str","D":"out"},"N":"name"},{"AT":{"#":"0.a_i32","D":0},"N":"col"}],"I":[{"%":)" +
         std::string(fetched) + R"(}],"O":[]}]}]}]}})";
}

/// One tensor of a .pdiparams file.
inline std::string stored_tensor(int64_t type, const Dims& dims, std::string_view elements, uint64_t levels = 0) {
  const std::string desc = tensor_desc(type, dims).str();
  std::string out(4, '\0');
  out.append(reinterpret_cast<const char*>(&levels), 8);
  for (uint64_t i = 0; i < levels; ++i) {
    const uint64_t bytes = 16;
    out.append(reinterpret_cast<const char*>(&bytes), 8).append(16, '\0');
  }
  out.append(4, '\0');
  const auto length = static_cast<int32_t>(desc.size());
  out.append(reinterpret_cast<const char*>(&length), 4);
  return out + desc + std::string(elements);
}

template <class T>
std::string raw_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string small_parameters() { return stored_tensor(kF32, {2, 3}, raw_bytes<float>({1, -2, 3, -4, 5, -6})); }

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "serin_paddle_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  const Folder& write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return *this;
  }

 private:
  std::filesystem::path path_;
};

/// Reads a program and its parameters as m.pdmodel or m.json.
inline Result<graph::Graph> read(std::string_view program, std::string_view parameters, std::string_view file = "m.pdmodel") {
  const Folder folder;
  folder.write(file, program).write("m.pdiparams", parameters);
  return read_paddle(folder / file);
}
inline Result<graph::Graph> read_pir(std::string_view program, std::string_view parameters) { return read(program, parameters, "m.json"); }

}  // namespace serin::formats
