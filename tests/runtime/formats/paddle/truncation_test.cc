// M2: programs and parameters cut off anywhere and with bits turned over: an answer comes, and no claim in them is believed.

#include <gtest/gtest.h>

#include <random>

#include "tests/runtime/formats/paddle/encode.h"

namespace serin::formats {
namespace {

struct Files {
  std::string program, parameters, name;
};

std::vector<Files> files() { return {{small_program(), small_parameters(), "m.pdmodel"}, {small_pir(), small_parameters(), "m.json"}}; }

TEST(PaddleM2, TruncatedAnywhere) {
  for (const Files& each : files()) {
    ASSERT_TRUE(read(each.program, each.parameters, each.name));
    // The last field of a ProgramDesc is its version: a file without it is a program of a development build.
    const size_t whole = each.name == "m.json" ? each.program.size() : each.program.size() - 7;
    for (size_t size = 0; size < whole; size += 3) EXPECT_FALSE(read(each.program.substr(0, size), each.parameters, each.name)) << size;
    for (size_t size = 0; size < each.parameters.size(); ++size)
      EXPECT_FALSE(read(each.program, each.parameters.substr(0, size), each.name)) << size;
  }
}

TEST(PaddleM2, BitsTurnedOver) {
  std::mt19937 random(1);
  for (const Files& each : files()) {
    for (int i = 0; i < 400; ++i) {
      Files changed = each;
      for (int flips = 1 + i % 4; flips > 0; --flips) {
        std::string& file = i % 3 == 0 ? changed.parameters : changed.program;
        file[random() % file.size()] ^= static_cast<char>(1U << random() % 8);
      }
      const auto graph = read(changed.program, changed.parameters, changed.name);
      EXPECT_TRUE(graph || !graph.error().message.empty());
      EXPECT_TRUE(graph || graph.error().code != Code::kInternal) << graph.error().message;
    }
  }
}

}  // namespace
}  // namespace serin::formats
