// runner.h: one case under every configuration: graph passes on and off, the reference kernels, each instruction set, with and without oneDNN,
// or, with SERIN_CUDA_PLUGIN in the environment, the kernels of its device alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "tests/conformance/suite.h"

namespace serin::conformance {

class Runner {
 public:
  Runner();

  /// What failed first, or nothing. In a process of its own: a crash or a hang is the failure of one case.
  std::optional<std::string> run(const Case& test) const;
  /// The same in this process, for a debugger.
  std::optional<std::string> run_here(const Case& test) const;

  /// "ref, scalar, avx2, avx512, avx512+onednn; not here: ...".
  std::string describe() const;

 private:
  void add_processor();
  std::string run_caught(const Case& test) const;

  struct Engine {
    std::string name;
    std::unique_ptr<kernels::Backend> backend;
    std::shared_ptr<const kernels::Backend> device;  ///< null: all on `backend`
  };
  std::vector<Engine> engines_;
  std::string missing_;
};

}  // namespace serin::conformance
