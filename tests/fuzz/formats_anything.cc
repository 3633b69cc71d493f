// formats_anything.cc: writes the files of a model into a folder in memory, as its users have them, and reads it there.
//
// Checksums keep a fuzzer out, so there are two ways into each format that has them: the file as it is, and its parts, around which the
// checksums are written here.

#include "tests/fuzz/formats_anything.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/formats/keras/keras.h"
#include "runtime/formats/paddle/paddle.h"
#include "runtime/formats/tensorflow/savedmodel.h"
#include "runtime/formats/torch/torch.h"
#include "runtime/formats/trees/trees.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/load_anything.h"
#include "tests/runtime/formats/tensorflow/saved_model.h"
#include "tests/runtime/formats/torch/archive.h"

namespace serin::fuzz {
namespace {

namespace fs = std::filesystem;
using Parts = std::vector<std::string>;
using Read = Result<graph::Graph>;

/// One for the process, in memory if the machine has such a folder.
class Folder {
 public:
  Folder() {
    const fs::path memory = "/dev/shm";
    std::error_code error;
    std::string pattern = ((fs::is_directory(memory, error) ? memory : fs::temp_directory_path()) / "serin_formats_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
    fs::create_directories(path_ / "variables");
    fs::create_directories(path_ / "assets");
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(std::string_view name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

const Folder& folder() {
  static const Folder one;
  return one;
}

/// Files of the folder while a model is read.
class Files {
 public:
  Files() = default;
  ~Files() {
    for (const std::string& path : paths_) ::unlink(path.c_str());
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  /// Returns its path.
  const std::string& write(std::string_view name, std::string_view bytes) {
    paths_.push_back(folder() / name);
    std::ofstream(paths_.back(), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return paths_.back();
  }

 private:
  std::vector<std::string> paths_;
};

Parts split(std::string_view input) {
  Parts parts;
  for (;;) {
    const size_t end = input.find(kBetween);
    parts.emplace_back(input.substr(0, end));
    if (end == std::string_view::npos) return parts;
    input.remove_prefix(end + kBetween.size());
  }
}

/// Each part under the name that stands at its place; returns the first one's path.
std::string write_parts(Files& files, const Parts& parts, std::initializer_list<const char*> names) {
  size_t i = 0;
  std::string first;
  for (const char* const name : names) {
    if (i == parts.size()) break;
    const std::string& path = files.write(name, parts[i]);
    if (i++ == 0) first = path;
  }
  return first;
}

Read read_program(const Parts& parts, std::initializer_list<const char*> names) {
  Files files;
  return formats::read_paddle(write_parts(files, parts, names), {}, {.operations = 1000});
}

Read read_variables(const Parts& parts) {
  Files files;
  const std::string model =
      write_parts(files, parts, {"saved_model.pb", formats::tf::test::kIndex, formats::tf::test::kData, "assets/words"});
  return formats::read_saved_model(model, {}, {.nodes = 1000, .nesting = 16});
}

Read read_archive(const std::string& archive) {
  Files files;
  return formats::read_torch(files.write("model.pt2", archive), {.nodes = 1000});
}

/// The second part is a block of the table: entries and restart points.
Read read_block(Parts parts) {
  if (parts.size() > 1) parts[1] = formats::tf::test::table_around(parts[1]);
  return read_variables(parts);
}

/// The program, the rows of weights, those of constants, and the first storages of both.
Read read_entries(const Parts& parts) {
  constexpr const char* kNames[] = {"m/models/model.json",
                                    "m/data/weights/model_weights_config.json",
                                    "m/data/constants/model_constants_config.json",
                                    "m/data/weights/weight_0",
                                    "m/data/weights/weight_1",
                                    "m/data/constants/tensor_0"};
  std::vector<formats::torch_test::ZipFile> entries = {{"m/archive_format", "pt2"}, {"m/byteorder", "little"}};
  for (size_t i = 0; i < std::min(parts.size(), std::size(kNames)); ++i) entries.push_back({kNames[i], parts[i]});
  return read_archive(formats::torch_test::zip(entries));
}

/// config.json, the weights, a vocabulary.
Read read_layers(const Parts& parts) {
  constexpr const char* kNames[] = {"config.json", "model.weights.h5", "assets/layers/string_lookup/vocabulary.txt"};
  std::vector<formats::torch_test::ZipFile> entries = {{"metadata.json", R"({"keras_version": "3.15.1"})"}};
  for (size_t i = 0; i < std::min(parts.size(), std::size(kNames)); ++i) entries.push_back({kNames[i], parts[i]});
  Files files;
  return formats::read_keras(files.write("model.keras", formats::torch_test::zip(entries)), {.config_bytes = 1 << 20, .calls = 1000});
}

Read read(char format, std::string_view input) {
  switch (format) {
    case 'd': return read_program(split(input), {"m.pdmodel", "m.pdiparams"});
    case 'p': return read_program(split(input), {"m.json", "m.pdiparams"});
    case 'm': return read_program(split(input), {"__model__", "w"});
    case 's': return read_variables(split(input));
    case 'v': return read_block(split(input));
    case 'z': return read_archive(std::string(input));
    case 't': return read_entries(split(input));
    case 'k': return read_layers(split(input));
    case 'l': return formats::read_lightgbm_text(input);
    case 'x': return formats::read_xgboost_bytes(std::string(input));
    default: return Error{Code::kInvalidArgument, "no format"};
  }
}

}  // namespace

void formats_anything(std::string_view input) {
  if (input.empty()) return;
  auto graph = read(input[0], input.substr(1));
  if (graph) run_anything(std::move(*graph));
}

}  // namespace serin::fuzz
