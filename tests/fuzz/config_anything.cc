#include "tests/fuzz/config_anything.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/serving/model_config.h"
#include "runtime/serving/tfserving_config.h"

namespace serin::fuzz {
namespace {

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

void apply(Result<serving::ReadModelConfig> read) {
  if (!read) return must(!read.error().message.empty(), "an error says why");
  serving::ModelSettings settings;
  const Status applied = serving::apply_model_config(*read, "/folder", settings);
  if (!applied) return must(!applied.error().message.empty(), "an error says why");
  must(settings.max_batch > 0, "what is applied can be served");
}

void read_list(std::string_view text) {
  const int file = ::memfd_create("config", MFD_CLOEXEC);
  must(file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "the file is written");
  const auto roots = serving::read_tf_config("/proc/self/fd/" + std::to_string(file));
  ::close(file);
  if (!roots) must(!roots.error().message.empty(), "an error says why");
}

}  // namespace

void config_anything(std::string_view input) {
  if (input.empty()) return;
  const std::string_view rest = input.substr(1);
  switch (input[0]) {
    case 'p': return apply(serving::parse_model_config(rest));
    case 'j': return apply(serving::parse_model_config_json(rest));
    case 't': return read_list(rest);
    default: return;
  }
}

}  // namespace serin::fuzz
