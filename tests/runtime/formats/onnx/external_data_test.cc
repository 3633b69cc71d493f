// M8: a model names the files its weights lie in, and may name only files beneath its own folder, by no link of any kind. The paths that need
// no file are in tests/data/bad; here are those that need one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/runtime/formats/onnx/encode.h"

namespace serin::formats {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class External : public ::testing::Test {
 protected:
  External() : root_(fs::path(::testing::TempDir()) / ("onnx_external_" + std::to_string(::getpid()))), folder_(root_ / "model") {
    fs::create_directories(folder_ / "sub");
    write(folder_ / "w.bin", raw_bytes<float>({1, 2, 3, 4}));
    write(folder_ / "sub" / "w.bin", raw_bytes<float>({5, 6, 7, 8}));
    write(root_ / "secret.bin", raw_bytes<float>({9, 9, 9, 9}));
  }
  ~External() override { fs::remove_all(root_); }

  static void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

  static Encoder tensor_at(const std::string& location, const std::vector<std::pair<std::string, std::string>>& more = {}) {
    Encoder out;
    out.number(1, 4).number(2, 1).bytes(8, "w").message(13, Encoder().bytes(1, "location").bytes(2, location)).number(14, 1);
    for (const auto& [key, value] : more) out.message(13, Encoder().bytes(1, key).bytes(2, value));
    return out;
  }
  Result<graph::Graph> read_file(const Encoder& model) {
    write(folder_ / "model.onnx", model.str());
    return read_onnx(folder_ / "model.onnx");
  }
  Result<graph::Graph> read_with(const std::string& location, const std::vector<std::pair<std::string, std::string>>& more = {}) {
    return read_file(
        model(13, {{node("Add", "a", {"x", "w"}, {"y"})}, {tensor_at(location, more)}, {value("x", {"n", "4"})}, {value("y", {})}}));
  }
  static float first_weight(const graph::Graph& graph) {
    for (size_t id = 0; id < graph.value_capacity(); ++id)
      if (const auto constant = graph.constant(static_cast<graph::ValueId>(id))) return constant->span<float>()[0];
    return 0;
  }

  fs::path root_, folder_;
};

TEST_F(External, BeneathTheFolder) {
  const auto beside = read_with("w.bin");
  ASSERT_TRUE(beside) << beside.error().message;
  EXPECT_EQ(first_weight(*beside), 1);
  const auto below = read_with("./sub/w.bin", {{"offset", "0"}, {"length", "16"}});
  ASSERT_TRUE(below) << below.error().message;
  EXPECT_EQ(first_weight(*below), 5);
}

TEST_F(External, AnOffsetNeedNotBeAligned) {
  write(folder_ / "odd.bin", "x" + raw_bytes<float>({3, 0, 0, 0}));
  const auto graph = read_with("odd.bin", {{"offset", "1"}});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(first_weight(*graph), 3);
}

TEST_F(External, M8Links) {
  fs::create_symlink("../secret.bin", folder_ / "link.bin");
  fs::create_directory_symlink("..", folder_ / "up");
  fs::create_hard_link(root_ / "secret.bin", folder_ / "hard.bin");
  EXPECT_THAT(error_of(read_with("link.bin")), HasSubstr("links are not followed"));
  EXPECT_THAT(error_of(read_with("up/secret.bin")), HasSubstr("links are not followed"));
  EXPECT_THAT(error_of(read_with("hard.bin")), HasSubstr("hard links"));
}

TEST_F(External, M8NotARegularFile) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(error_of(read_with("fifo")), HasSubstr("is a FIFO"));
  EXPECT_THAT(error_of(read_with("sub")), HasSubstr("is a directory"));
  EXPECT_THAT(error_of(read_with("sub/")), HasSubstr("names no file"));
  EXPECT_THAT(error_of(read_with("w.bin/x")), HasSubstr("no folder"));
}

TEST_F(External, M8Paths) {
  EXPECT_THAT(error_of(read_with((root_ / "secret.bin").string())), HasSubstr("absolute path"));
  EXPECT_THAT(error_of(read_with("//server/share")), HasSubstr("absolute path"));
  EXPECT_THAT(error_of(read_with("../secret.bin")), HasSubstr("'..'"));
  EXPECT_THAT(error_of(read_with("sub/../../secret.bin")), HasSubstr("'..'"));
  EXPECT_THAT(error_of(read_with(std::string("w.bin\0x", 7))), HasSubstr("NUL"));
}

TEST_F(External, M8Windows) {
  EXPECT_THAT(error_of(read_with("w.bin", {{"offset", "1"}})), HasSubstr("needs 16 bytes from offset 1"));
  EXPECT_THAT(error_of(read_with("w.bin", {{"offset", "18446744073709551615"}})), HasSubstr("from offset 18446744073709551615"));
  EXPECT_THAT(error_of(read_with("w.bin", {{"offset", "18446744073709551616"}})), HasSubstr("no size in bytes"));
  EXPECT_THAT(error_of(read_with("w.bin", {{"offset", "0x10"}})), HasSubstr("no size in bytes"));
  EXPECT_THAT(error_of(read_with("w.bin", {{"length", "-1"}})), HasSubstr("no size in bytes"));
  EXPECT_THAT(error_of(read_with("w.bin", {{"checksum", "00"}})), HasSubstr("checksum"));
}

TEST_F(External, M8InAttributesAndBodies) {
  const Encoder constant = node("Constant", "c", {}, {"w"}, {tensor_attribute("value", tensor_at("../secret.bin"))});
  EXPECT_THAT(error_of(read_file(model(13, {{constant}, {}, {}, {value("w", {})}}))), HasSubstr("'..'"));
  const Encoder branch = graph({{constant}, {}, {}, {value("w", {})}});
  const Encoder choose = node("If", "if", {"c"}, {"y"}, {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)});
  EXPECT_THAT(error_of(read_file(model(13, {{choose}, {}, {value("c", {}, 9)}, {value("y", {})}}))), HasSubstr("'..'"));
}

TEST_F(External, M8InSparseTensors) {
  Encoder sparse_graph = graph({{}, {}, {value("x", {"n"})}, {value("x", {})}});
  sparse_graph.message(15, Encoder().message(1, tensor_at("../secret.bin")));
  EXPECT_THAT(error_of(read_file(model(13, sparse_graph))), HasSubstr("initializer 'w': external data '../secret.bin' leads upward"));
}

TEST_F(External, M8NoneForModelsInMemory) {
  const Encoder file = model(13, {{node("Add", "a", {"x", "w"}, {"y"})}, {tensor_at("w.bin")}, {value("x", {"n", "4"})}, {value("y", {})}});
  EXPECT_THAT(error_of(read(file)), HasSubstr("not allowed for a model in memory"));
}

}  // namespace
}  // namespace serin::formats
