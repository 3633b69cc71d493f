#include "tests/runtime/engine/fixtures.h"

#include <algorithm>
#include <filesystem>

#include "runtime/formats/onnx/onnx.h"

namespace serin::engine::test {

namespace fs = std::filesystem;

std::vector<Fixture> fixtures() {
  std::vector<Fixture> result;
  for (const fs::directory_entry& folder : fs::directory_iterator(SERIN_TEST_DATA)) {
    Fixture fixture{folder.path().filename(), folder.path() / "model.onnx", {}};
    constexpr std::string_view kDigits = "digits_";
    if (fixture.name.starts_with(kDigits)) fixture.model = SERIN_MODELS "/digits/" + fixture.name.substr(kDigits.size()) + "/model.onnx";
    if (!folder.is_directory() || !fs::exists(fixture.model)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_")) fixture.data_sets.push_back(entry.path());
    }
    std::sort(fixture.data_sets.begin(), fixture.data_sets.end());
    result.push_back(std::move(fixture));
  }
  std::sort(result.begin(), result.end(), [](const Fixture& a, const Fixture& b) { return a.name < b.name; });
  return result;
}

std::vector<Tensor> read_tensors(const std::string& data_set, const std::string& kind) {
  std::vector<Tensor> tensors;
  for (int i = 0;; ++i) {
    const std::string path = data_set + "/" + kind + "_" + std::to_string(i) + ".pb";
    if (!fs::exists(path)) return tensors;
    const auto constant = formats::read_tensor_file(path);
    EXPECT_TRUE(constant) << constant.error().message;
    if (!constant) return tensors;
    tensors.emplace_back(**constant);
  }
}

}  // namespace serin::engine::test
