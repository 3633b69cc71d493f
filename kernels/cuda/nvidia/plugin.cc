// plugin.cc: the one symbol of libserin_cuda.so.

#include "kernels/cuda/plugin.h"

#include <cublasLt.h>

#include <utility>

#include "kernels/cuda/device.h"
#include "kernels/cuda/nvidia/conv_dnn.h"
#include "kernels/cuda/nvidia/library.h"
#include "kernels/cuda/nvidia/matmul_lt.h"
#include "kernels/cuda/table.h"

namespace serin::kernels::cuda {

namespace {

/// What the rows of the libraries hold; it lives as long as the last of them.
struct Shared {
  Shared(std::string tactics_path, std::string scope, std::string* note) : tactics(std::move(tactics_path), std::move(scope), note) {}
  ~Shared() {
    if (libraries.blas) cublasLtDestroy(libraries.blas);
  }
  Tactics tactics;
  Libraries libraries;
  std::shared_ptr<Dnn> dnn;
};

std::string blas_version() {
  const size_t version = cublasLtGetVersion();
  return "cuBLASLt " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

void add_library_rows(KernelTable& table, const std::shared_ptr<Shared>& shared) {
  const auto first = [&table](std::string_view kind, KernelRow row) {
    auto& rows = table[static_cast<size_t>(std::find(kOpNames.begin(), kOpNames.end(), kind) - kOpNames.begin())];
    rows.insert(rows.begin(), std::move(row));
  };
  if (shared->libraries.blas) {
    first("MatMul", {"cublaslt", [shared](const OpDesc& desc, PrepareContext& context, std::string& why) {
                       return prepare_matmul_lt(shared->libraries, desc, context, why);
                     }});
  }
  if (shared->dnn) {
    first("Conv", {"cudnn", [shared](const OpDesc& desc, PrepareContext& context, std::string& why) {
                     return prepare_conv_dnn(shared->dnn, shared->libraries, desc, context, why);
                   }});
  }
}

void open(const Options& options, Opened& opened) {
  opened.device = open_device(options.device, opened.note);
  if (!opened.device) return;
  const Device::Info& info = opened.device->info();
  opened.note = info.name + " " + info.architecture + ", " + blas_version() + ", " + dnn_version();
  std::string complaint;
  auto shared = std::make_shared<Shared>(options.tactics_path, opened.note, &complaint);
  shared->libraries.tactics = &shared->tactics;
  shared->libraries.tf32 = options.tf32;
  if (Fault fault = fault_of(cublasLtCreate(&shared->libraries.blas))) complaint += "; " + *fault;
  std::string why;
  shared->dnn = open_dnn(why);
  if (!shared->dnn) complaint += "; " + why;
  opened.table = make_table();
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
