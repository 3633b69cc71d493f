#include "tests/fuzz/config_anything.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "runtime/serving/settings/model_config.h"
#include "runtime/serving/settings/ovms_config.h"
#include "runtime/serving/settings/settings.h"
#include "runtime/serving/settings/tfserving_config.h"
#include "tests/fuzz/must.h"

namespace serin::fuzz {
namespace {

void apply(Result<serving::ReadModelConfig> read) {
  if (!read) return must(!read.error().message.empty(), "an error says why");
  serving::ModelSettings settings;
  const Status applied = serving::apply_model_config(*read, "/folder", settings);
  if (!applied) return must(!applied.error().message.empty(), "an error says why");
  must(settings.max_batch > 0, "what is applied can be served");
}

/// What `read` makes of a file with that text.
template <class Read>
auto from_file(std::string_view text, Read read) {
  const int file = ::memfd_create("config", MFD_CLOEXEC);
  must(file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "the file is written");
  auto result = read("/proc/self/fd/" + std::to_string(file));
  ::close(file);
  if (!result) must(!result.error().message.empty(), "an error says why");
  return result;
}

void read_settings(std::string_view text) {
  const auto settings = from_file(text, [](const std::string& path) { return serving::read_model_settings(path); });
  if (settings) must(settings->max_batch > 0, "what is accepted can be served");
}

}  // namespace

void config_anything(std::string_view input) {
  if (input.empty()) return;
  const std::string_view rest = input.substr(1);
  switch (input[0]) {
    case 'p': return apply(serving::parse_model_config(rest));
    case 'j': return apply(serving::parse_model_config_json(rest));
    case 's': return read_settings(rest);
    case 'o': return (void)from_file(rest, [](const std::string& path) { return serving::read_ovms_config(path); });
    case 't': return (void)from_file(rest, [](const std::string& path) { return serving::read_tf_config(path); });
    default: return;
  }
}

}  // namespace serin::fuzz
