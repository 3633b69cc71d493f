// run_time.h: Compiles kernels whose text is generated while Serin runs, with NVRTC for the current device.
//
// NVRTC has no files. The headers that such a text may include are embedded in the plugin (embedded_headers), with the part of the standard
// library that they use (standard.h).
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/kept_files.h"
#include "kernels/mutex.h"

namespace serin::kernels::cuda {

/// NVRTC opens its other half by name alone. If the loader does not search its folder, that works only if it is loaded already, which this
/// call ensures. Call it before anything is compiled, also by cuDNN, whose engines use the same NVRTC.
void open_run_time_compiler();

/// "NVRTC 13.0".
std::string run_time_compiler_version();

/// Machine code of `text` for `architecture` ("sm_90"), or nothing, with the compiler's message in `why`. `log`: the assembler's report on
/// registers and memory.
std::optional<std::string> compile_at_run_time(const std::string& text, const std::string& architecture, std::string& why,
                                               std::string* log = nullptr);

/// Code compiled for one device, loaded as long as this exists. Thread-safe.
class RunTimeKernels {
 public:
  /// Code is kept in `folder` for the next process (empty: not kept). `scope`: its conditions in addition to architecture and compiler.
  RunTimeKernels(std::string architecture, const std::string& folder, const std::string& scope);
  ~RunTimeKernels();
  RunTimeKernels(const RunTimeKernels&) = delete;
  RunTimeKernels& operator=(const RunTimeKernels&) = delete;

  /// The kernels of `text` (extern "C"), in the order of `names`, for cudaLaunchKernelExC. Empty, with the reason in `why`, if compiling or
  /// loading fails.
  std::vector<const void*> load(const std::string& text, const std::vector<const char*>& names, std::string& why);

 private:
  struct Loaded {
    cudaLibrary_t library = nullptr;
    std::string why;  ///< not loaded; not tried again
  };
  Loaded make(const std::string& text) const;

  const std::string architecture_;
  const KeptFiles files_;
  Mutex mutex_;
  std::map<std::string, Loaded> loaded_ SERIN_GUARDED_BY(mutex_);  ///< by text
};

}  // namespace serin::kernels::cuda
