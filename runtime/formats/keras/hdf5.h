// hdf5.h: the tensors in an HDF5 file, as h5py writes them: groups by name, and tensors in one piece each.
//
//   SERIN_TRY(const Hdf5 file, Hdf5::open({input, offset}, size));
//   if (const Hdf5::Tensor* kernel = file.find("layers/dense/vars/0")) ...
//
// Files are read in both of their layouts: symbol tables (the default of HDF5 1) and links (the default of HDF5 2). A tensor in chunks, or compressed, is
// refused when it is read. Nothing is copied: a tensor is a window of the open file.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/tensor.h"
#include "runtime/base/result.h"
#include "runtime/formats/input_file.h"
#include "runtime/graph/constant.h"

namespace serin::formats::keras {

class Hdf5 {
 public:
  struct Tensor {
    DType dtype = DType::kUndefined;
    Shape shape;
    size_t offset = 0;    ///< of the elements, in the file on disk
    std::string problem;  ///< why it cannot be read; empty: it can
  };

  /// `window`: where the HDF5 file begins in a file on disk; `size`: its bytes. kCorrupt, kUnsupported (layouts that h5py does not write), kTooLarge.
  static Result<Hdf5> open(FileWindow window, size_t size);

  /// By its path without a leading slash; null if there is none.
  const Tensor* find(std::string_view path) const;
  /// Whether any tensor lies below this folder, "layers/dense/".
  bool has_below(std::string_view folder) const;
  /// The elements, which stay in the file if they are many. Errors name the path.
  Result<graph::ConstantPtr> constant(std::string_view path) const;

 private:
  FileWindow window_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace serin::formats::keras
