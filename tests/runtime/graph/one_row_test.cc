// Each operator has one row, in the file of its family, and each function of one element is an operator of that name.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "kernels/function_names.h"
#include "runtime/graph/op.h"

namespace serin::graph {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(SERIN_TEST_DATA) / "../../runtime/graph/ops";

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// For each operator, the families with a row of it.
std::map<std::string, std::multiset<std::string>> rows() {
  std::map<std::string, std::multiset<std::string>> found;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".def" || entry.path().filename() == "all.def") continue;
    const std::string text = contents(entry.path());
    const std::regex row("(^|\n)SERIN_OP\\((\\w+)");
    for (auto match = std::sregex_iterator(text.begin(), text.end(), row); match != std::sregex_iterator(); ++match)
      found[(*match)[2]].insert(entry.path().filename());
  }
  return found;
}

TEST(OneRow, IsThereForEachOperator) {
  const auto all = rows();
  EXPECT_EQ(all.size(), kOpCount);
  for (const auto& [name, families] : all) {
    EXPECT_EQ(families.size(), 1u) << name;
    const auto op = find_op(name);
    ASSERT_TRUE(op) << name << " is in no file of all.def";
    EXPECT_EQ(op_name(*op), name);
  }
}

TEST(OneRow, NamesTheOperatorOfAFunction) {
  for (const kernels::NamedUnary& function : kernels::function_rows::kUnary) {
    if (function.word.empty() || function.word == "GeluTanh") continue;  // Identity moves its operand; Gelu has an attribute
    const auto op = find_op(function.word);
    ASSERT_TRUE(op) << function.word;
    EXPECT_EQ(schema(*op).min_inputs, 1) << function.word;
    EXPECT_EQ(schema(*op).outputs, 1) << function.word;
  }
  for (const std::string_view function : kernels::function_rows::kBinary) {
    if (function == "FMod") continue;  // Mod has an attribute
    EXPECT_TRUE(find_op(function)) << function;
  }
}

}  // namespace
}  // namespace serin::graph
