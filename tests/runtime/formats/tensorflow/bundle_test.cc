// The weights: what a bundle says and where its bytes are; vocabularies in assets.

#include "runtime/formats/tensorflow/bundle.h"
#include "runtime/formats/open_beneath.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "runtime/formats/tensorflow/state.h"
#include "runtime/formats/tensorflow/table.h"
#include "runtime/formats/tensorflow/tensor.h"
#include "tests/runtime/formats/tensorflow/saved_model.h"

namespace serin::formats::tf {
namespace {

using namespace test;
using ::testing::HasSubstr;

const std::string kBytes(16, '\x01');

std::string with_entry(const std::string& entry) {
  Model model = model_with_variable();
  model.files[kIndex] = table_of({{"", header_proto()}, {"w", entry}});
  return error_of(model);
}

TEST(Bundle, RestoresAVariable) {
  const auto graph = read(model_with_variable());
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph::print(*graph), "x: f32[batch,4]\ny = Mul(x, w[4])\nreturn y\n");
}

TEST(Bundle, Crc32cIsTheStandardOne) {
  const std::string_view digits = "123456789";
  EXPECT_EQ(crc32c({reinterpret_cast<const std::byte*>(digits.data()), digits.size()}), 0xe3069283U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Bundle, RefusesEntriesThatDoNotFit) {
  EXPECT_THAT(with_entry(entry_proto(1, {4}, 0, 12, 0)), HasSubstr("has 12 bytes, its shape needs 16"));
  EXPECT_THAT(with_entry(entry_proto(1, {4}, 4, 16, 0)), HasSubstr("needs 16 bytes at 4"));
  EXPECT_THAT(with_entry(entry_proto(1, {4}, -1, 16, 0)), HasSubstr("needs 16 bytes"));
  EXPECT_THAT(with_entry(entry_proto(1, {-4}, 0, 16, 0)), HasSubstr("shape [-4]"));
  EXPECT_THAT(with_entry(entry_proto(1, {1LL << 62, 1LL << 62}, 0, 16, 0)), HasSubstr("shape"));
  EXPECT_THAT(with_entry(entry_proto(21, {4}, 0, 16, 0)), HasSubstr("dtype 21"));
  EXPECT_THAT(with_entry(entry_proto(1, {4}, 0, 16, 0, 7)), HasSubstr("file 7 of 1"));
  EXPECT_THAT(with_entry(entry_proto(1, {4}, 0, 16, 12345)), HasSubstr("checksum"));
  EXPECT_THAT(with_entry("\xff"), HasSubstr("variables.index"));
}

TEST(Bundle, ChecksumsOfWeights) {
  Model model = model_with_variable();
  model.files[kData][5] ^= 1;
  EXPECT_THAT(error_of(model), HasSubstr("the checksum of its bytes is wrong"));
  model.files[kData].resize(15);
  EXPECT_THAT(error_of(model), HasSubstr("which has 15"));
  model.files.erase(kData);
  EXPECT_THAT(error_of(model), HasSubstr("cannot be opened"));
}

TEST(Bundle, VariablesWithoutWeights) {
  Model model = model_with_variable();
  model.files.clear();
  EXPECT_THAT(error_of(model), HasSubstr("has no tensor 'w'"));
  model = model_with_variable();
  model.restore_op = "y";
  EXPECT_TRUE(read(model)) << "not restored, but of that name in the bundle";
}

TEST(Bundle, EachBitOfTheIndexCounts) {
  const Model model = model_with_variable();
  const std::string index = model.files.at(kIndex);
  for (size_t byte = 0; byte < index.size(); ++byte) {
    Model bad = model;
    bad.files[kIndex][byte] ^= static_cast<char>(1 << (byte % 8));
    const auto graph = read(bad);
    EXPECT_TRUE(graph || graph.error().code != Code::kInternal);
  }
  for (size_t size = 0; size < index.size(); ++size) {
    Model bad = model;
    bad.files[kIndex].resize(size);
    EXPECT_THAT(error_of(bad), HasSubstr("table")) << size;
  }
}

TEST(Bundle, TablesOutOfOrder) {
  const auto read_entries = [](const std::vector<std::pair<std::string, std::string>>& entries) {
    const std::string table = table_of(entries);
    return read_table({reinterpret_cast<const std::byte*>(table.data()), table.size()},
                      [](std::string_view, wire::Bytes) { return Status(); });
  };
  EXPECT_TRUE(read_entries({{"", ""}, {"a", "1"}, {"b", "2"}}));
  EXPECT_THAT(read_entries({{"b", "1"}, {"a", "2"}}).error().message, HasSubstr("out of order"));
  EXPECT_THAT(read_entries({{"a", "1"}, {"a", "2"}}).error().message, HasSubstr("out of order"));
  std::string compressed = table_of({});
  compressed[8] = 1;  // behind the first block
  const wire::Bytes bytes{reinterpret_cast<const std::byte*>(compressed.data()), compressed.size()};
  const auto ignore = [](std::string_view, wire::Bytes) { return Status(); };
  EXPECT_THAT(read_table(bytes, ignore).error().message, HasSubstr("compressed"));
}

TEST(Bundle, M8LinksAreNotFollowed) {
  const Folder folder, other;
  const Model model = model_with_variable();
  folder.write("saved_model.pb", model.proto());
  folder.write(kIndex, model.files.at(kIndex));
  other.write("data", model.files.at(kData));
  ASSERT_EQ(::symlink(other.file("data").c_str(), folder.file(kData).c_str()), 0);
  EXPECT_THAT(formats::read_saved_model(folder.file("saved_model.pb")).error().message, HasSubstr("links are not followed"));
  ::unlink(folder.file(kData).c_str());
  ASSERT_EQ(::link(other.file("data").c_str(), folder.file(kData).c_str()), 0);
  EXPECT_THAT(formats::read_saved_model(folder.file("saved_model.pb")).error().message, HasSubstr("hard links"));
}

/// y = table[x] of strings, with the vocabulary in a file.
Model model_with_vocabulary(const std::string& file) {
  std::string name;
  wire::write_integer(name, 1, 7);
  wire::write_bytes(name, 2, shape_proto({}));
  wire::write_bytes(name, 8, "ignored");
  const int64_t minus = -1;
  Model model = model_of({{"table", "HashTableV2", {}, {}},
                          constant("file", 7, name),
                          {"init",
                           "InitializeTableFromTextFileV2",
                           {"table", "file"},
                           {{"key_index", attr_int(-2)}, {"value_index", attr_int(-1)}, {"vocab_size", attr_int(-1)}}},
                          {"init_all", "NoOp", {"^init"}, {}},
                          constant("default", 9, tensor_proto<int64_t>(9, {}, {minus})),
                          {"y", "LookupTableFindV2", {"table", "x", "default"}, {}}});
  model.inputs[0].dtype = 7;
  model.init_op = "init_all";
  model.assets = {{"file:0", file}};
  model.files["assets/vocabulary.txt"] = "red\ngreen\nblue\n";
  return model;
}

TEST(Assets, AVocabularyBecomesATable) {
  const auto graph = read(model_with_vocabulary("vocabulary.txt"));
  ASSERT_TRUE(graph) << graph.error().message;
  const auto nodes = graph->nodes(graph::Op::kLabelEncoder);
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(std::get<std::vector<std::string>>(graph->node(nodes[0]).attributes.at("keys_strings")),
            (std::vector<std::string>{"red", "green", "blue"}));
  EXPECT_EQ(graph->node(nodes[0]).integers("values_int64s"), (std::vector<int64_t>{0, 1, 2}));
}

TEST(Assets, M8NothingOutsideTheFolder) {
  EXPECT_THAT(error_of(model_with_vocabulary("../saved_model.pb")), HasSubstr("leads upward"));
  EXPECT_THAT(error_of(model_with_vocabulary("a/../../b")), HasSubstr("leads upward"));
  EXPECT_THAT(error_of(model_with_vocabulary(std::string("a\0b", 3))), HasSubstr("NUL"));
  EXPECT_THAT(error_of(model_with_vocabulary("gone.txt")), HasSubstr("cannot be opened"));
  Model model = model_with_vocabulary("vocabulary.txt");
  model.assets.clear();
  EXPECT_THAT(error_of(model), HasSubstr("not part of the model"));
  EXPECT_THAT(open_beneath("/tmp", "/etc/passwd", "file").error().message, HasSubstr("absolute"));
}

}  // namespace
}  // namespace serin::formats::tf
