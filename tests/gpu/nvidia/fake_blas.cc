#include "tests/gpu/nvidia/fake_blas.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/gpu/nvidia/fake_numbers.h"

struct cublasLtContext {
  int device = 0;
};

namespace fake_blas {

Rules rules;
uint64_t products = 0, refusals = 0;

namespace {

constexpr size_t kWorkspaceAlignment = 256;

// The three descriptions as they lie in the memory that the header reserves for them.
struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale, bias_type;
  int32_t transpose_a, transpose_b;
  uint32_t epilogue;
  const void* bias;
};
struct Layout {
  cudaDataType_t type;
  int32_t batches;
  int64_t rows, columns, leading, step;
};
struct Preference {
  uint64_t workspace;
  uint32_t reductions;
  uint32_t alignments[4];
};
struct Algorithm {
  uint64_t number, problem, workspace;
  uint32_t alignments[4], bias_alignment;
};
static_assert(sizeof(Operation) <= sizeof(cublasLtMatmulDescOpaque_t) && sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t) &&
              sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t) && sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <class T, class Opaque>
T& in(Opaque* opaque) {
  return *reinterpret_cast<T*>(opaque);
}

cublasStatus_t refuse(const char* why, cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE) {
  ++refusals;
  std::fprintf(stderr, "fake cuBLASLt: %s\n", why);
  return status;
}

bool fails_now() { return fake::fails_now(rules.calls_before_failure); }

template <class T>
cublasStatus_t set(T& value, const void* from, size_t bytes) {
  if (!from || bytes != sizeof(T)) return refuse("an attribute has another size");
  std::memcpy(&value, from, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

bool has_bias(uint32_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
}
bool has_relu(uint32_t epilogue) { return epilogue == CUBLASLT_EPILOGUE_RELU || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS; }
bool has_gelu(uint32_t epilogue) { return epilogue == CUBLASLT_EPILOGUE_GELU || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS; }

size_t size_of(cudaDataType_t type) { return type == CUDA_R_32F ? 4 : 2; }

serin::DType dtype_of(cudaDataType_t type) {
  using serin::DType;
  return type == CUDA_R_32F ? DType::kFloat32 : type == CUDA_R_16F ? DType::kFloat16 : DType::kBFloat16;
}
double load(cudaDataType_t type, const void* at, int64_t i) { return fake::load(dtype_of(type), at, i); }

double activated(uint32_t epilogue, double x) {
  if (has_relu(epilogue)) return x > 0 ? x : x != x ? x : 0;
  if (has_gelu(epilogue)) return fake::gelu_tanh(x);
  return x;
}

struct Problem {
  Operation operation;
  Layout a, b, c, d;
};

/// All that an algorithm depends on: not the address of the bias.
uint64_t number_of(const Problem& p) {
  uint64_t hash = 1469598103934665603u;
  const auto add = [&hash](int64_t value) { hash = (hash ^ static_cast<uint64_t>(value)) * 1099511628211u; };
  const Operation& o = p.operation;
  for (const int64_t value : {static_cast<int64_t>(o.compute), static_cast<int64_t>(o.scale), static_cast<int64_t>(o.bias_type),
                              static_cast<int64_t>(o.transpose_a), static_cast<int64_t>(o.transpose_b), static_cast<int64_t>(o.epilogue)})
    add(value);
  for (const Layout* each : {&p.a, &p.b, &p.c, &p.d})
    for (const int64_t value :
         {static_cast<int64_t>(each->type), static_cast<int64_t>(each->batches), each->rows, each->columns, each->leading, each->step})
      add(value);
  return hash;
}

uint32_t alignment_of(const void* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  return address == 0 ? 256 : static_cast<uint32_t>(std::min<uintptr_t>(address & -address, 256));
}

const char* contradiction(const Problem& p) {
  const Operation& o = p.operation;
  if (p.a.type != p.b.type || p.a.type != p.d.type || p.c.type != p.d.type) return "operands differ in type";
  if (p.d.type != CUDA_R_32F && p.d.type != CUDA_R_16F && p.d.type != CUDA_R_16BF) return "a type that this library does not know";
  if (o.scale != CUDA_R_32F) return "the scale is no float";
  if (o.compute != CUBLAS_COMPUTE_32F && o.compute != CUBLAS_COMPUTE_32F_FAST_TF32)
    return "an accumulator that kernels/cuda never asks for";
  if (o.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && p.d.type != CUDA_R_32F) return "TF32 for operands that are no floats";
  const int64_t m = o.transpose_a == CUBLAS_OP_N ? p.a.rows : p.a.columns, k = o.transpose_a == CUBLAS_OP_N ? p.a.columns : p.a.rows;
  const int64_t k_of_b = o.transpose_b == CUBLAS_OP_N ? p.b.rows : p.b.columns, n = o.transpose_b == CUBLAS_OP_N ? p.b.columns : p.b.rows;
  if (m != p.d.rows || n != p.d.columns || k != k_of_b || m <= 0 || n <= 0 || k <= 0)
    return "the sizes of the operands contradict each other";
  if (p.c.rows != m || p.c.columns != n || p.c.step != p.d.step) return "C and D differ in layout";
  for (const Layout* each : {&p.a, &p.b, &p.c, &p.d}) {
    if (each->leading < each->rows) return "a leading dimension below the number of rows";
    if (each->batches != p.d.batches || each->batches < 1) return "operands differ in the number of products";
    if (each->step != 0 && each->step < each->leading * each->columns) return "products overlap";
  }
  if (p.d.batches > 1 && p.d.step == 0) return "all products have one result";
  if (has_bias(o.epilogue) != (o.bias != nullptr)) return "a bias without an epilogue that adds it, or the reverse";
  if (o.bias && o.bias_type != p.d.type) return "the bias has another type than the result";
  return nullptr;
}

void multiply(const Problem& p, float alpha, const void* a, const void* b, float beta, const void* c, void* d) {
  const Operation& o = p.operation;
  const bool turned_a = o.transpose_a != CUBLAS_OP_N, turned_b = o.transpose_b != CUBLAS_OP_N;
  const int64_t k = turned_a ? p.a.rows : p.a.columns;
  const bool rounds = o.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  std::vector<double> results(static_cast<size_t>(p.d.rows * p.d.columns));
  for (int64_t batch = 0; batch < p.d.batches; ++batch) {
    for (int64_t column = 0; column < p.d.columns; ++column)
      for (int64_t row = 0; row < p.d.rows; ++row) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) {
          const double x = load(p.a.type, a, batch * p.a.step + (turned_a ? row * p.a.leading + i : i * p.a.leading + row));
          const double y = load(p.b.type, b, batch * p.b.step + (turned_b ? i * p.b.leading + column : column * p.b.leading + i));
          sum += rounds ? fake::tf32(x) * fake::tf32(y) : x * y;
        }
        sum *= static_cast<double>(alpha);
        if (beta != 0) sum += static_cast<double>(beta) * load(p.c.type, c, batch * p.c.step + column * p.c.leading + row);
        if (has_bias(o.epilogue)) sum += load(o.bias_type, o.bias, row);
        results[static_cast<size_t>(column * p.d.rows + row)] = activated(o.epilogue, sum);
      }
    for (int64_t column = 0; column < p.d.columns; ++column)
      for (int64_t row = 0; row < p.d.rows; ++row)
        fake::store(dtype_of(p.d.type), d, batch * p.d.step + column * p.d.leading + row,
                    results[static_cast<size_t>(column * p.d.rows + row)]);
  }
}

size_t bytes_of(const Layout& layout) {
  return static_cast<size_t>(layout.step * (layout.batches - 1) + layout.leading * (layout.columns - 1) + layout.rows) *
         size_of(layout.type);
}

const char* misplaced(const Problem& p, const Algorithm& algorithm, const void* const (&operands)[4], const void* workspace) {
  for (int i = 0; i < 4; ++i)
    if (alignment_of(operands[i]) < algorithm.alignments[i]) return "an operand begins where its algorithm does not expect it";
  if (p.operation.bias && alignment_of(p.operation.bias) < algorithm.bias_alignment)
    return "the bias begins where its algorithm does not expect it";
  if (algorithm.workspace > 0 && reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment != 0) return "the workspace is not aligned";
  return nullptr;
}

}  // namespace

}  // namespace fake_blas

using namespace fake_blas;  // NOLINT: the functions below are the library's own

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (fails_now()) return CUBLAS_STATUS_ALLOC_FAILED;
  auto made = std::make_unique<cublasLtContext>();
  cudaGetDevice(&made->device);
  *handle = made.release();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_ALLOC_FAILED ? "no memory" : status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "invalid value";
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t size, cublasComputeType_t compute, cudaDataType_t scale) {
  if (fails_now()) return CUBLAS_STATUS_ALLOC_FAILED;
  if (size != sizeof(*desc)) return refuse("a description of another size");
  in<Operation>(desc) = {compute, scale, CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t bytes) {
  if (fails_now()) return CUBLAS_STATUS_ALLOC_FAILED;
  auto& operation = in<Operation>(desc);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(operation.transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(operation.transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(operation.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(operation.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return set(operation.bias_type, value, bytes);
    default: return refuse("an attribute of a product that this library does not know");
  }
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size, cudaDataType type, uint64_t rows,
                                                 uint64_t columns, int64_t leading) {
  if (fails_now()) return CUBLAS_STATUS_ALLOC_FAILED;
  if (size != sizeof(*layout)) return refuse("a layout of another size");
  in<Layout>(layout) = {type, 1, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading, 0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  if (fails_now()) return CUBLAS_STATUS_ALLOC_FAILED;
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(in<Layout>(layout).batches, value, bytes);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return set(in<Layout>(layout).step, value, bytes);
  return refuse("an attribute of a layout that this library does not know");
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size) {
  if (fails_now()) return CUBLAS_STATUS_ALLOC_FAILED;
  if (size != sizeof(*preference)) return refuse("a preference of another size");
  in<Preference>(preference) = {0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  if (fails_now()) return CUBLAS_STATUS_ALLOC_FAILED;
  auto& wanted = in<Preference>(preference);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(wanted.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return set(wanted.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return set(wanted.alignments[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return set(wanted.alignments[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return set(wanted.alignments[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return set(wanted.alignments[3], value, bytes);
    default: return refuse("a preference that this library does not know");
  }
}

/// The first takes no workspace. The second does not run. The third asks for more of a workspace than is permitted, and says so in its state.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most, cublasLtMatmulHeuristicResult_t found[],
                                              int* count) {
  constexpr uint64_t kWorkspaces[] = {0, 0, uint64_t{1} << 40, 4096, 70000};
  *count = 0;
  if (fails_now()) return CUBLAS_STATUS_ALLOC_FAILED;
  if (!handle) return refuse("no handle");
  const Problem problem{in<Operation>(desc), in<Layout>(a), in<Layout>(b), in<Layout>(c), in<Layout>(d)};
  const auto& wanted = in<Preference>(preference);
  if (const char* const why = contradiction(problem)) return refuse(why);
  if (problem.d.type != CUDA_R_32F && wanted.reductions != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
    return refuse("parts of a product may be added up in 16 bits");
  const auto epilogue = static_cast<cublasLtEpilogue_t>(problem.operation.epilogue);
  if ((rules.fuses && !rules.fuses(epilogue, problem.d.rows)) || (rules.takes && !rules.takes(wanted.alignments[0])))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (uint64_t i = 0; i < std::size(kWorkspaces) && *count < most; ++i) {
    const bool works = kWorkspaces[i] <= wanted.workspace;
    Algorithm algorithm{i, number_of(problem), kWorkspaces[i], {}, alignment_of(problem.operation.bias)};
    std::copy_n(wanted.alignments, 4, algorithm.alignments);
    cublasLtMatmulHeuristicResult_t& result = found[(*count)++] = {};
    std::memcpy(&result.algo, &algorithm, sizeof algorithm);
    result.workspaceSize = works ? algorithm.workspace : 0;
    result.state = works ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t of_a, const void* b, cublasLtMatrixLayout_t of_b, const void* beta, const void* c,
                              cublasLtMatrixLayout_t of_c, void* d, cublasLtMatrixLayout_t of_d, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  if (fails_now()) return CUBLAS_STATUS_ALLOC_FAILED;
  if (!handle || !stream || stream->device != handle->device) return refuse("no handle, or no stream of its device");
  const Problem problem{in<Operation>(desc), in<Layout>(of_a), in<Layout>(of_b), in<Layout>(of_c), in<Layout>(of_d)};
  if (const char* const why = contradiction(problem)) return refuse(why);
  Algorithm algorithm{};
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (algorithm.problem != number_of(problem)) return refuse("the algorithm is one for another product", CUBLAS_STATUS_NOT_SUPPORTED);
  if (workspace_bytes < algorithm.workspace) return refuse("the workspace is too small");
  if (const char* const why = misplaced(problem, algorithm, {a, b, c, d}, workspace)) return refuse(why);
  float factor = 0, kept = 0;
  std::memcpy(&factor, alpha, sizeof factor);
  std::memcpy(&kept, beta, sizeof kept);
  emulator::check_global(a, bytes_of(problem.a));
  emulator::check_global(b, bytes_of(problem.b));
  emulator::check_global(d, bytes_of(problem.d));
  if (kept != 0) emulator::check_global(c, bytes_of(problem.c));
  if (problem.operation.bias) emulator::check_global(problem.operation.bias, static_cast<size_t>(problem.d.rows) * size_of(problem.d.type));
  if (algorithm.workspace > 0) emulator::check_global(workspace, algorithm.workspace);
  if (algorithm.number == 1) return CUBLAS_STATUS_NOT_SUPPORTED;
  const cudaError_t error = emulator::submit(stream, [=] {
    ++products;
    if (algorithm.workspace > 0) std::memset(workspace, 0x7F, algorithm.workspace);
    multiply(problem, factor, a, b, kept, c, d);
  });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
