// weights.h: parameters, buffers and constants of an archive, as constants of a graph.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "runtime/formats/torch/program.h"
#include "runtime/formats/zip_archive.h"

namespace serin::formats::torch {

class Weights {
 public:
  /// `folder`: of the archive, "model/data/weights/"; `config`: the file in it that lists the tensors.
  static Result<Weights> read(const ZipArchive& archive, const std::string& folder, std::string_view config);

  /// kNotFound if there is none of that name; kCorrupt if its bytes are not there; kUnsupported if it is a pickle.
  Result<graph::ConstantPtr> get(std::string_view name) const;
  bool contains(std::string_view name) const { return rows_.contains(name); }

 private:
  struct Row {
    std::string path;
    bool pickled = false;
    Json meta;
  };

  const ZipArchive* archive_ = nullptr;
  JsonDocument document_;
  std::map<std::string, Row, std::less<>> rows_;
};

}  // namespace serin::formats::torch
