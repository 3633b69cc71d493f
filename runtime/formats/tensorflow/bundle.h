// bundle.h: the weights of a SavedModel: variables/variables.index and the files of bytes next to it.
//
//   SERIN_TRY(Bundle bundle, Bundle::open(folder));
//   SERIN_TRY(graph::ConstantPtr kernel, bundle.read("dense/kernel/.ATTRIBUTES/VARIABLE_VALUE"));
//
// A large tensor is a recipe over the open file. Its checksum is verified each time that it is read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/formats/input_file.h"
#include "runtime/graph/constant.h"

namespace serin::formats::tf {

class Bundle {
 public:
  /// A model without variables has no such files; then every name is unknown.
  static Result<Bundle> open(const std::string& folder);

  bool contains(std::string_view name) const { return entries_.contains(name); }
  /// kNotFound: no such tensor. kUnsupported: strings in more than one part, and other types.
  Result<graph::ConstantPtr> read(std::string_view name);
  /// kUnavailable if a file was written to since it was opened.
  Status unchanged() const;

 private:
  struct Entry {
    int64_t dtype = 0;
    std::vector<int64_t> dims;
    int64_t shard = 0;
    uint64_t offset = 0, size = 0;
    uint32_t crc = 0;
    bool sliced = false;
  };

  Status take_entry(std::string_view name, std::span<const std::byte> value);
  Result<std::shared_ptr<const InputFile>> shard(int64_t number);
  static Result<graph::ConstantPtr> read_strings(const Entry& entry, const Shape& shape, const FileWindow& window);

  std::string folder_;
  int64_t shards_ = 0;
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<int64_t, std::shared_ptr<const InputFile>> files_;
};

}  // namespace serin::formats::tf
