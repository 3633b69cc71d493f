// plugin.cc: the one symbol of libserin_cuda.so.

#include "kernels/cuda/plugin.h"

#include <cublasLt.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "kernels/cuda/build_id.h"
#include "kernels/cuda/chain_compiled.h"
#include "kernels/cuda/current.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/fastest.h"
#include "kernels/cuda/nvidia/dnn.h"
#include "kernels/cuda/nvidia/library.h"
#include "kernels/cuda/nvidia/matmul_lt.h"
#include "kernels/cuda/nvidia/run_time.h"
#include "kernels/cuda/table.h"

namespace serin::kernels::cuda {

namespace {

/// What the rows of the libraries hold; it lives as long as the last of them.
struct Shared {
  ~Shared() {
    if (libraries.blas) cublasLtDestroy(libraries.blas);
  }
  Libraries libraries;
  std::shared_ptr<Dnn> dnn;
  std::unique_ptr<RunTimeKernels> run_time;
};

std::string blas_version() {
  const size_t version = cublasLtGetVersion();
  return "cuBLASLt " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

using DnnPrepare = std::unique_ptr<Kernel> (*)(const std::shared_ptr<Dnn>&, const Libraries&, const OpDesc&, PrepareContext&, std::string&);

KernelRow dnn_row(std::string name, const std::shared_ptr<Shared>& shared, DnnPrepare prepare) {
  return row(std::move(name), [shared, prepare](const OpDesc& desc, PrepareContext& context, std::string& why) {
    return prepare(shared->dnn, shared->libraries, desc, context, why);
  });
}

/// cuBLASLt; where its epilogue lacks the activation, cuDNN may be faster, which compiles one.
std::vector<KernelRow> product_rows(const std::shared_ptr<Shared>& shared) {
  if (!shared->libraries.blas) return {};
  const KernelRow lt = row("cublaslt", [shared](const OpDesc& desc, PrepareContext& context, std::string& why) {
    return prepare_matmul_lt(shared->libraries, desc, context, why);
  });
  if (!shared->dnn) return {lt};
  const KernelRow dnn = dnn_row("cudnn_matmul", shared, prepare_matmul_dnn);
  const KernelRow either = fastest_of({lt, dnn}, shared->libraries.tactics);
  const auto prepare = [lt, either](const OpDesc& desc, PrepareContext& context, std::string& why) {
    const bool complete = activates_lt(std::get<MatMul>(desc.op).epilogue.activation);
    return (complete ? lt : either).prepare(desc, context, why);
  };
  return {{lt.name, prepare, {lt, dnn}}};
}

/// ReLU, bias and residual are what the library has fused kernels for. Other activations it compiles into one, or refuses: then two kernels may be faster.
KernelRow conv_row(const std::shared_ptr<Shared>& shared) {
  const KernelRow fused = dnn_row("cudnn", shared, prepare_conv_dnn), apart = dnn_row("cudnn_apart", shared, prepare_conv_dnn_apart);
  const KernelRow either = fastest_of({fused, apart}, shared->libraries.tactics);
  const auto prepare = [fused, apart, either](const OpDesc& desc, PrepareContext& context, std::string& why) {
    const UnaryFn activation = std::get<Conv>(desc.op).epilogue.activation;
    if (activation != UnaryFn::kIdentity && activation != UnaryFn::kRelu) return either.prepare(desc, context, why);
    std::string reason;
    if (auto kernel = fused.prepare(desc, context, why)) return kernel;
    auto kernel = apart.prepare(desc, context, reason);
    if (!kernel) why += "; " + apart.name + ": " + reason;
    return kernel;
  };
  return {fused.name, prepare, {fused, apart}};
}

/// A kernel for each chain of functions; what cannot be compiled is interpreted by the row behind it.
KernelRow chain_row(const std::shared_ptr<Shared>& shared) {
  const ChainCompiler compile = [shared](const std::string& text, std::string& why) -> std::optional<ChainKernels> {
    const std::vector<const void*> made = shared->run_time->load(text, {kChainGroups, kChainSingles}, why);
    if (made.empty()) return std::nullopt;
    return ChainKernels{made[0], made[1]};
  };
  return row("chain_compiled_cuda",
             [compile](const OpDesc& desc, PrepareContext&, std::string& why) { return prepare_compiled_chain(compile, desc, why); });
}

/// What a library has goes before our own rows; where ours may be faster (depthwise windows, patches, attention), all that accept are timed.
void add_library_rows(KernelTable& table, const std::shared_ptr<Shared>& shared) {
  const auto rows_of = [&table](std::string_view kind) -> std::vector<KernelRow>& {
    return table[static_cast<size_t>(std::ranges::find(kOpNames, kind) - kOpNames.begin())];
  };
  const auto contend = [&](std::vector<KernelRow>& rows, KernelRow library, std::initializer_list<std::string_view> own) {
    std::vector<KernelRow> all{std::move(library)};
    for (const std::string_view name : own) {
      const auto at = std::ranges::find(rows, name, &KernelRow::name);
      all.push_back(std::move(*at));
      rows.erase(at);
    }
    rows.insert(rows.begin(), fastest_of(all, shared->libraries.tactics));
  };
  rows_of("Pointwise").insert(rows_of("Pointwise").begin(), chain_row(shared));
  if (shared->dnn) {
    contend(rows_of("Conv"), conv_row(shared), {"conv_depthwise_cuda", "conv_patches_cuda"});
    contend(rows_of("Generic"), named("Attention", dnn_row("cudnn_sdpa", shared, prepare_attention_dnn)), {"attention_tiles_cuda"});
  }
}

void open(const Options& options, Opened& opened) {
  if (options.device == Options::kList) {
    opened.listed = list_devices(opened.note);
    return;
  }
  opened.device = open_device(options.device, opened.note);
  if (!opened.device) return;
  const CurrentDevice here(options.device);  // handles of libraries belong to the current one
  open_run_time_compiler();
  const Device::Info& info = opened.device->info();
  opened.note = info.name + " " + info.architecture + ", " + blas_version() + ", " + dnn_version();
  std::string complaint;
  auto shared = std::make_shared<Shared>();
  shared->libraries.tactics =
      std::make_shared<Tactics>(options.tactics_folder, opened.note + ", build " + build_id(), &complaint, &Traffic::of(options.device));
  if (Fault fault = fault_of(cublasLtCreate(&shared->libraries.blas))) complaint += "; " + *fault;
  shared->run_time = std::make_unique<RunTimeKernels>(info.architecture, options.tactics_folder, "build " + build_id());
  std::string why;
  shared->dnn = open_dnn(why);
  if (!shared->dnn) complaint += "; " + why;
  opened.table = make_table(product_rows(shared));
  add_library_rows(opened.table, shared);
  if (!complaint.empty()) opened.note += " (" + complaint + ")";
}

}  // namespace

}  // namespace serin::kernels::cuda

extern "C" __attribute__((visibility("default"))) bool serin_cuda_plugin(uint32_t version, const serin::kernels::cuda::Options& options,
                                                                         serin::kernels::cuda::Opened* opened) {
  if (version != serin::kernels::cuda::kPluginVersion) return false;
  serin::kernels::cuda::open(options, *opened);
  return true;
}
