// matmul_lt.cc: MatMul by cuBLASLt: f32, f16 and bf16, on tensor cores where the type allows it, with bias, residual, ReLU and tanh-GELU in the same kernel.
//
// Row-major a [m, k] times b [k, n] is, read column by column, b' a'. So cuBLASLt is asked for y' = b' a', and nothing is copied or turned. f32 stays f32
// unless tf32 was asked for. A residual is the library's C. An activation that its epilogue lacks (the GELU of erf) is a pass of our own over y, which is still
// far less than a product without tensor cores.
//
// The library ranks its algorithms for a shape; the first few are timed when the kernel is prepared, and the fastest stays (tactics.h). They may load 16 bytes at
// once. Operands of a run that begin elsewhere, parts of others, take one more algorithm, the library's first choice for addresses of no such promise; a bias
// that does, for which it knows no promise, or operands for which it has no algorithm, a kernel of our own.

#include "kernels/cuda/nvidia/matmul_lt.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/cuda/aligned.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/trial.h"
#include "kernels/indexing.h"

namespace serin::kernels::cuda {

namespace {

constexpr size_t kWorkspace = size_t{32} << 20;
constexpr int kCandidates = 8;
constexpr uint32_t kVector = 16;  ///< bytes

std::optional<cudaDataType_t> type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return CUDA_R_32F;
    case DType::kFloat16: return CUDA_R_16F;
    case DType::kBFloat16: return CUDA_R_16BF;
    default: return std::nullopt;
  }
}

std::optional<cublasLtEpilogue_t> epilogue_of(UnaryFn activation, bool bias) {
  switch (activation) {
    case UnaryFn::kIdentity: return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case UnaryFn::kRelu: return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case UnaryFn::kGeluTanh: return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    default: return std::nullopt;
  }
}

/// An operand as cuBLASLt sees it: `rows` x `columns` column-major, that is, the transpose of ours.
struct Matrix {
  int64_t rows, columns, step = 0;  ///< step: from one product to the next, 0 where all share it
};

/// What one product is, before the library is asked.
struct Problem {
  cudaDataType_t type = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  int64_t m = 0, n = 0, k = 0;
  int32_t products = 1;
  bool transpose_a = false, transpose_b = false;
  Matrix a{}, b{}, y{};
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float alpha = 1.f;
  bool bias = false, residual = false;
  bool activated = true;  ///< by the library

  std::string key() const {
    std::string text = "matmul";
    for (const int64_t value : {static_cast<int64_t>(type), static_cast<int64_t>(compute), m, n, k, static_cast<int64_t>(products),
                                static_cast<int64_t>(transpose_a), static_cast<int64_t>(transpose_b), a.step, b.step,
                                static_cast<int64_t>(epilogue), static_cast<int64_t>(residual)})
      text += " " + std::to_string(value);
    return text;
  }
};

/// The products of `y` one after the other: which step each operand takes. Nothing where a broadcast is more than "all share it".
std::optional<int64_t> step_of(const Shape& operand, const Shape& y, int64_t products) {
  int64_t own = 1;
  for (size_t axis = 0; axis + 2 < operand.rank(); ++axis) own *= operand[axis];
  if (own == 1) return 0;
  if (own != products || operand.rank() != y.rank()) return std::nullopt;
  return operand[operand.rank() - 1] * operand[operand.rank() - 2];
}

std::optional<Problem> problem_of(const OpDesc& desc, bool tf32, std::string& why) {
  const auto no = [&why](std::string reason) {
    why = std::move(reason);
    return std::nullopt;
  };
  const auto& op = std::get<MatMul>(desc.op);
  const Shape &a = desc.inputs[0].shape, &b = desc.inputs[1].shape, &y = desc.outputs[0].shape;
  const auto type = type_of(desc.outputs[0].dtype);
  if (!type) return no("cuBLASLt multiplies f32, f16 and bf16 here");
  for (const TensorDesc& input : desc.inputs) {
    if (input.dtype != desc.outputs[0].dtype) return no("inputs differ in dtype");
  }
  if (a.rank() < 2 || b.rank() < 2) return no("operands must have rank 2 or more");
  const auto epilogue = epilogue_of(op.epilogue.activation, op.bias);
  Problem p;
  p.type = *type;
  p.compute = *type == CUDA_R_32F && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  p.m = y[y.rank() - 2], p.n = y.back(), p.k = op.transpose_a ? a[a.rank() - 2] : a.back();
  p.transpose_a = op.transpose_a, p.transpose_b = op.transpose_b;
  p.activated = epilogue.has_value();
  p.epilogue = epilogue.value_or(*epilogue_of(UnaryFn::kIdentity, op.bias)), p.alpha = op.alpha, p.bias = op.bias,
  p.residual = op.epilogue.residual;
  if (y.elements() == 0 || p.k == 0) return no("nothing is multiplied");
  int64_t products = y.elements() / (p.m * p.n);
  if (products > 1 && b.rank() == 2 && !op.transpose_a && static_cast<int64_t>(a.elements()) == products * p.m * p.k) {
    p.m *= products;  // one weight for all: the rows of all products are one matrix
    products = 1;
  }
  if (products > INT32_MAX) return no("more products than the library counts");
  p.products = static_cast<int32_t>(products);
  const auto a_step = products == 1 ? std::optional<int64_t>(0) : step_of(a, y, products),
             b_step = products == 1 ? std::optional<int64_t>(0) : step_of(b, y, products);
  if (!a_step || !b_step) return no("batch dimensions broadcast in part");
  if (op.bias && (desc.inputs[2].shape.elements() != p.n || desc.inputs[2].shape.rank() == 0 || desc.inputs[2].shape.back() != p.n))
    return no("cuBLASLt adds one bias for each column");
  if (p.residual && desc.inputs.back().shape.elements() != y.elements()) return no("the residual broadcasts");
  p.a = op.transpose_a ? Matrix{p.m, p.k, *a_step} : Matrix{p.k, p.m, *a_step};
  p.b = op.transpose_b ? Matrix{p.k, p.n, *b_step} : Matrix{p.n, p.k, *b_step};
  p.y = {p.n, p.m, products == 1 ? 0 : p.m * p.n};
  return p;
}

/// The library's descriptions of a product. Each run makes its own: several threads may run one kernel, and the bias is part of them.
class Description {
 public:
  Fault describe(const Problem& p, const void* bias) {
    // The library's first operand is our b.
    const cublasOperation_t first = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, second = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescInit(&operation_, p.compute, CUDA_R_32F));
    set(CUBLASLT_MATMUL_DESC_TRANSA, first);
    set(CUBLASLT_MATMUL_DESC_TRANSB, second);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
    if (p.bias) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, p.type);
    if (p.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    describe(a_, p.a, p);
    describe(b_, p.b, p);
    describe(y_, p.y, p);
    return fault_of(status_);
  }

  cublasLtMatmulDesc_t operation() { return &operation_; }
  cublasLtMatrixLayout_t a() { return &a_; }
  cublasLtMatrixLayout_t b() { return &b_; }
  cublasLtMatrixLayout_t y() { return &y_; }

 private:
  void check(cublasStatus_t status) {
    if (status_ == CUBLAS_STATUS_SUCCESS) status_ = status;
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(&operation_, attribute, static_cast<const void*>(&value), sizeof(value)));
  }
  void describe(cublasLtMatrixLayoutOpaque_t& layout, const Matrix& matrix, const Problem& p) {
    const auto rows = static_cast<uint64_t>(matrix.rows), columns = static_cast<uint64_t>(matrix.columns);
    check(cublasLtMatrixLayoutInit(&layout, p.type, rows, columns, matrix.rows));
    check(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &p.products, sizeof(p.products)));
    check(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.step, sizeof(matrix.step)));
  }

  cublasLtMatmulDescOpaque_t operation_;
  cublasLtMatrixLayoutOpaque_t a_, b_, y_;
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;  // the first that is not
};

using Algorithms = std::vector<cublasLtMatmulHeuristicResult_t>;

/// What a pass over the result still has to do.
struct After {
  enum class Reads : uint8_t { kResult, kOperandsToo };
  std::unique_ptr<Kernel> kernel;  ///< null: nothing
  Reads reads = Reads::kResult;
};

class LtKernel final : public Kernel {
 public:
  /// `unaligned`: none or one algorithm; `other` takes what has none.
  LtKernel(const Libraries& libraries, const Problem& problem, Algorithms algorithms, Algorithms unaligned, std::unique_ptr<Kernel> other,
           After after)
      : libraries_(libraries),
        problem_(problem),
        algorithms_(std::move(algorithms)),
        unaligned_(std::move(unaligned)),
        other_(std::move(other)),
        after_(std::move(after)) {}

  std::string_view name() const override {
    if (!after_.kernel) return "cublaslt";
    return after_.reads == After::Reads::kResult ? "cublaslt+unary_cuda" : "cublaslt+conv_finish_cuda";
  }
  size_t scratch_bytes() const override {
    const size_t unaligned = unaligned_.empty() ? 0 : unaligned_[0].workspaceSize;
    return std::max({algorithms_[chosen_].workspaceSize, unaligned, other_->scratch_bytes()});
  }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const void* const residual = problem_.residual ? in.back().data : out[0].data;
    const bool aligned = is_aligned_to(kVector, in) && is_aligned_to(kVector, out);
    const bool aligned_bias = !problem_.bias || is_aligned_to(kVector, in.subspan(2, 1));
    if (!aligned && (unaligned_.empty() || !aligned_bias)) return other_->run(stream, in, out);
    Fault fault = multiply(aligned ? algorithms_[chosen_] : unaligned_[0], static_cast<cudaStream_t>(stream.queue), in[0].data, in[1].data,
                           problem_.bias ? in[2].data : nullptr, residual, out[0].data, stream.scratch);
    if (fault || !after_.kernel) return fault;
    return after_.reads == After::Reads::kResult ? after_.kernel->run(stream, out, out) : after_.kernel->run(stream, in, out);
  }

  /// Times the algorithms. Leaves the library's first choice where none can be.
  void choose() {
    std::optional<Operands> operands;
    const int way = libraries_.tactics->choose(problem_.key(), static_cast<int>(algorithms_.size()), [&](int i) {
      if (!operands) operands.emplace(problem_);
      return operands->time(*this, algorithms_[static_cast<size_t>(i)]);
    });
    chosen_ = static_cast<size_t>(std::max(way, 0));
  }

 private:
  class Operands {
   public:
    explicit Operands(const Problem& p)
        : a_(trial_.take(bytes(p, p.a))),
          b_(trial_.take(bytes(p, p.b))),
          bias_(trial_.take(static_cast<size_t>(p.n) * 4)),
          y_(trial_.take(bytes(p, p.y))) {}

    std::optional<double> time(const LtKernel& kernel, const cublasLtMatmulHeuristicResult_t& algorithm) {
      return trial_.time(algorithm.workspaceSize,
                         [&](void* workspace) { return !kernel.multiply(algorithm, trial_.stream(), a_, b_, bias_, y_, y_, workspace); });
    }

   private:
    static size_t bytes(const Problem& p, const Matrix& m) {
      return static_cast<size_t>(m.rows * m.columns + m.step * (p.products - 1)) * (p.type == CUDA_R_32F ? 4 : 2);
    }
    Trial trial_;
    void *const a_, *const b_, *const bias_, *const y_;
  };

  Fault multiply(const cublasLtMatmulHeuristicResult_t& algorithm, cudaStream_t stream, const void* a, const void* b, const void* bias,
                 const void* residual, void* y, void* workspace) const {
    const float alpha = problem_.alpha, beta = problem_.residual ? 1.f : 0.f;
    Description of;
    if (Fault fault = of.describe(problem_, bias)) return fault;
    return fault_of(cublasLtMatmul(libraries_.blas, of.operation(), &alpha, b, of.b(), a, of.a(), &beta, residual, of.y(), y, of.y(),
                                   &algorithm.algo, workspace, algorithm.workspaceSize, stream));
  }

  const Libraries& libraries_;
  const Problem problem_;
  const Algorithms algorithms_, unaligned_;
  const std::unique_ptr<Kernel> other_;
  const After after_;
  size_t chosen_ = 0;
};

/// At most `most`, for operands at multiples of `alignment` bytes.
Algorithms algorithms_for(const Libraries& libraries, const Problem& p, uint32_t alignment, int most) {
  // Algorithms tell by the address of the bias how much of it may be loaded at once; each run has its own.
  alignas(2 * kVector) static constexpr std::byte kSomewhere[2 * kVector] = {};
  Description of;
  cublasLtMatmulPreferenceOpaque_t preference;
  if (of.describe(p, kSomewhere + kVector) || cublasLtMatmulPreferenceInit(&preference) != CUBLAS_STATUS_SUCCESS) return {};
  bool set = true;
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    set = set && cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)) == CUBLAS_STATUS_SUCCESS;
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  // Where a product is cut along k, its parts are not added up in 16 bits.
  const uint32_t exact = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, exact);
  for (const auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(operand, alignment);
  Algorithms found(static_cast<size_t>(most));
  int count = 0;
  if (!set || cublasLtMatmulAlgoGetHeuristic(libraries.blas, of.operation(), of.b(), of.a(), of.y(), of.y(), &preference, most,
                                             found.data(), &count) != CUBLAS_STATUS_SUCCESS)
    count = 0;
  found.resize(static_cast<size_t>(count));
  std::erase_if(found, [](const auto& each) { return each.state != CUBLAS_STATUS_SUCCESS; });
  return found;
}

/// The product alone, with its residual. Bias and activation are left to a pass over the result.
Problem without_epilogue(Problem p) {
  p.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  p.bias = p.activated = false;
  return p;
}

/// y = act(y + bias): what follows a convolution whose channels come last is the same.
After finish_apart(const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& op = std::get<MatMul>(desc.op);
  OpDesc finish = desc;
  finish.op = Conv{.bias = op.bias, .epilogue = {op.epilogue.activation, op.epilogue.alpha, op.epilogue.beta}, .channels_last = true};
  return {prepare_conv_finish(finish, context, why), After::Reads::kOperandsToo};
}

After activate_apart(const OpDesc& desc, PrepareContext& context, std::string& why) {
  const Epilogue& epilogue = std::get<MatMul>(desc.op).epilogue;
  return {prepare_unary({Unary{epilogue.activation, epilogue.alpha, epilogue.beta}, {desc.outputs[0]}, {desc.outputs[0]}}, context, why)};
}

}  // namespace

bool activates_lt(UnaryFn activation) { return epilogue_of(activation, false).has_value(); }

std::unique_ptr<Kernel> prepare_matmul_lt(const Libraries& libraries, const OpDesc& desc, PrepareContext& context, std::string& why) {
  auto problem = problem_of(desc, context.tf32, why);
  if (!problem) return nullptr;
  auto algorithms = algorithms_for(libraries, *problem, kVector, kCandidates);
  // The library fuses less than it multiplies: in 16 bits it wants rows of whole vectors. A second pass costs far less than a product on CUDA cores.
  const bool apart = algorithms.empty() && problem->epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  if (apart) {
    problem = without_epilogue(*problem);
    algorithms = algorithms_for(libraries, *problem, kVector, kCandidates);
  }
  if (algorithms.empty()) return refuse(why, "cuBLASLt has no algorithm for it");
  After after;
  if (apart)
    after = finish_apart(desc, context, why);
  else if (!problem->activated)
    after = activate_apart(desc, context, why);
  if (!problem->activated && !after.kernel) return nullptr;
  auto unaligned = algorithms_for(libraries, *problem, static_cast<uint32_t>(dtype_size(desc.outputs[0].dtype)), 1);
  auto other = prepare_matmul(desc, context, why);
  if (!other) return nullptr;
  auto kernel =
      std::make_unique<LtKernel>(libraries, *problem, std::move(algorithms), std::move(unaligned), std::move(other), std::move(after));
  kernel->choose();
  return kernel;
}

}  // namespace serin::kernels::cuda
