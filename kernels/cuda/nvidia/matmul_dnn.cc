// matmul_dnn.cc: MatMul by a graph of cuDNN, which compiles the whole epilogue into the product: for activations that cuBLASLt's epilogue lacks (the GELU of
// erf, SiLU, Sigmoid). A pass of its own over y costs nearly as much as the product: 11 us beside 13 for ViT-B/16 at batch 8 on an H100. Only 16-bit floats:
// the library's compiled products use tensor cores.

#include <optional>
#include <utility>
#include <vector>

#include "kernels/cuda/aligned.h"
#include "kernels/cuda/nvidia/dnn_graph.h"
#include "kernels/cuda/rows.h"
#include "kernels/indexing.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

/// An operand as the library sees it: [products, rows, columns].
struct Matrices {
  std::vector<int64_t> dims, strides;
};

/// The last two axes of `shape`, swapped if `transpose`; the axes before are one. Nothing where these broadcast in part.
std::optional<Matrices> matrices_of(const Shape& shape, bool transpose, int64_t products) {
  const int64_t rows = shape[shape.rank() - 2], columns = shape.back();
  const int64_t own = product(shape, 0, shape.rank() - 2);
  if (own != 1 && own != products) return std::nullopt;
  if (transpose) return Matrices{{own, columns, rows}, {rows * columns, 1, columns}};
  return Matrices{{own, rows, columns}, {rows * columns, columns, 1}};
}

std::string why_not(const OpDesc& desc) {
  const auto& op = std::get<MatMul>(desc.op);
  const TensorDesc& y = desc.outputs[0];
  if (y.dtype != DType::kFloat16 && y.dtype != DType::kBFloat16) return "only 16-bit floats";
  if (!ref::one_dtype(desc)) return "inputs differ in dtype";
  if (desc.inputs[0].shape.rank() < 2 || desc.inputs[1].shape.rank() < 2) return "operands must have rank 2 or more";
  if (y.shape.elements() == 0 || desc.inputs[0].shape.elements() == 0) return "nothing is multiplied";
  if (op.alpha != 1.f) return "a factor";
  for (const TensorDesc* each : {desc.inputs.data(), desc.inputs.data() + 1, desc.outputs.data()}) {
    if (each->shape.back() % 8 != 0) return "rows that are not aligned to 16 bytes";
  }
  if (op.bias && (desc.inputs[2].shape.rank() == 0 || desc.inputs[2].shape.back() != y.shape.back() ||
                  desc.inputs[2].shape.elements() != y.shape.back()))
    return "a bias that is not one for each column";
  if (op.epilogue.residual && desc.inputs.back().shape.elements() != y.shape.elements()) return "the residual broadcasts";
  return {};
}

}  // namespace

std::unique_ptr<Kernel> prepare_matmul_dnn(const std::shared_ptr<Dnn>& dnn, const Libraries& libraries, const OpDesc& desc,
                                           PrepareContext& context, std::string& why) {
  const auto& op = std::get<MatMul>(desc.op);
  why = why_not(desc);
  if (!why.empty()) return nullptr;
  const auto activation = dnn_activation(op.epilogue);
  if (!activation && op.epilogue.activation != UnaryFn::kIdentity) return refuse(why, "cuDNN has no such activation");
  const Shape &a_shape = desc.inputs[0].shape, &b_shape = desc.inputs[1].shape, &y_shape = desc.outputs[0].shape;
  const int64_t products = product(y_shape, 0, y_shape.rank() - 2);
  auto a = matrices_of(a_shape, op.transpose_a, products), b = matrices_of(b_shape, op.transpose_b, products),
       y = matrices_of(y_shape, false, products);
  if (!a || !b || !y) return refuse(why, "batch dimensions broadcast in part");
  if (b->dims[0] == 1 && a->dims[0] == products && !op.transpose_a) {  // one weight for all: the rows of all products are one matrix
    for (Matrices* each : {&*a, &*y}) each->dims = {1, each->dims[1] * products, each->dims[2]};
  }

  auto made = std::make_unique<DnnGraph>();
  fe::graph::Graph& graph = made->graph();
  const fe::DataType_t type = *dnn_type(desc.outputs[0].dtype);
  graph.set_io_data_type(type).set_intermediate_data_type(fe::DataType_t::FLOAT).set_compute_data_type(fe::DataType_t::FLOAT);
  auto value = graph.matmul(made->operand(0, a->dims, a->strides), made->operand(1, b->dims, b->strides), fe::graph::Matmul_attributes());
  value->set_dim(y->dims).set_stride(y->strides);
  const int64_t n = y->dims[2];
  if (op.bias) value = made->sum(value, made->operand(2, {1, 1, n}, {n, n, 1}), y->dims, y->strides);
  if (op.epilogue.residual)
    value = made->sum(value, made->operand(static_cast<int64_t>(desc.inputs.size()) - 1, y->dims, y->strides), y->dims, y->strides);
  if (activation) value = graph.pointwise(value, *activation);
  DnnGraph::answer(value, y->dims, y->strides, type);
  made->key = "matmul " + std::string(dtype_name(desc.outputs[0].dtype)) + a_shape.str() + b_shape.str() + y_shape.str() + " " +
              std::to_string(op.transpose_a) + std::to_string(op.transpose_b) + std::to_string(op.bias) +
              std::to_string(op.epilogue.residual) + " " + std::to_string(static_cast<int>(op.epilogue.activation));
  auto kernel = prepare_dnn(dnn, std::move(made), *libraries.tactics, desc, why, kSearchCompiled);
  if (!kernel) return nullptr;
  return aligned_or(std::move(kernel), prepare_matmul(desc, context, why));
}

}  // namespace serin::kernels::cuda
