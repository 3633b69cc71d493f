// run_time.h: kernels whose text is made while Serin runs, compiled by NVRTC for the device at hand.
//
// NVRTC has no files: our headers that such a text may include lie in the plugin (embedded_headers), and so does as much of the standard library as they use
// (standard.h).
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/kept_files.h"

namespace serin::kernels::cuda {

/// NVRTC opens its other half by name alone; where the loader does not look into its folder, that only works if it is there already, and this sees to it. To be
/// called before anything is compiled, by cuDNN too, whose engines use the same NVRTC.
void open_run_time_compiler();

/// "NVRTC 13.0".
std::string run_time_compiler_version();

/// Machine code of `text` for `architecture` ("sm_90"), or nothing, with what the compiler says in `why`. `log`: what the assembler says of registers and memory.
std::optional<std::string> compile_at_run_time(const std::string& text, const std::string& architecture, std::string& why,
                                               std::string* log = nullptr);

/// What was compiled for one device, loaded as long as this lives. Thread-safe.
class RunTimeKernels {
 public:
  /// Code is kept in `folder` for the next process (empty: nowhere); `scope`: what it holds for beside architecture and compiler.
  RunTimeKernels(std::string architecture, const std::string& folder, const std::string& scope);
  ~RunTimeKernels();
  RunTimeKernels(const RunTimeKernels&) = delete;
  RunTimeKernels& operator=(const RunTimeKernels&) = delete;

  /// The kernels of `text` (extern "C"), in the order of `names`, for cudaLaunchKernelExC. Empty, with the reason in `why`, where it cannot be compiled or loaded.
  std::vector<const void*> load(const std::string& text, const std::vector<const char*>& names, std::string& why);

 private:
  struct Loaded {
    cudaLibrary_t library = nullptr;
    std::string why;  ///< it is not; not tried again
  };
  Loaded make(const std::string& text) const;

  const std::string architecture_;
  const KeptFiles files_;
  std::mutex mutex_;
  std::map<std::string, Loaded> loaded_;  ///< by text; guarded by mutex_
};

}  // namespace serin::kernels::cuda
