#include "runtime/steps/pipeline/model_files.h"

#include "runtime/base/file.h"

namespace serin::steps {

Result<std::string> find_file(const config::Node& name, const FindFile& files) {
  SERIN_TRY(const std::string file, name.text());
  auto path = files(file);
  if (!path) return name.error(path.error().message);
  return path;
}

Result<std::vector<std::string>> read_lines_of(const config::Node& name, const FindFile& files) {
  constexpr size_t kMostBytes = size_t{16} << 20;
  SERIN_TRY(const std::string path, find_file(name, files));
  auto lines = read_lines(path, kMostBytes);
  if (!lines) return name.error(lines.error().message);
  return lines;
}

}  // namespace serin::steps
