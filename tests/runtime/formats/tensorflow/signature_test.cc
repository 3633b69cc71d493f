// Several signatures of one file, and operators whose outputs have names of several: ParseExampleV2.

#include "runtime/formats/tensorflow/operators.h"

#include <gmock/gmock.h>

#include "runtime/formats/tensorflow/ragged.h"
#include "runtime/graph/same.h"
#include "tests/runtime/formats/tensorflow/saved_model.h"

namespace serin::formats::tf {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// x * w as "serving_default" and as "again"; x + w as "sums".
Model with_signatures() {
  Model model = model_with_variable();
  model.nodes.push_back({"z", "Add", {"x", "read"}, {}});
  model.method = "tensorflow/serving/classify";
  model.more_signatures = {{"again", "tensorflow/serving/predict", model.inputs, model.outputs},
                           {"sums", "tensorflow/serving/regress", model.inputs, {{"outputs", "z:0", 1, {-1, 4}}}},
                           {"__saved_model_init_op", "", {}, {}}};
  return model;
}

TEST(Signatures, AreChosenByName) {
  const auto standard = read(with_signatures());
  ASSERT_TRUE(standard) << standard.error().message;
  EXPECT_EQ(standard->signature.name, "serving_default");
  EXPECT_EQ(standard->signature.method, "tensorflow/serving/classify");
  EXPECT_THAT(standard->signature.others, ElementsAre("again", "sums"));
  const auto sums = read(with_signatures(), {}, {.signature = "sums"});
  ASSERT_TRUE(sums) << sums.error().message;
  EXPECT_THAT(sums->output_names(), ElementsAre("outputs"));
  EXPECT_EQ(sums->signature.method, "tensorflow/serving/regress");
  const auto none = read(with_signatures(), {}, {.signature = "none"});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("has no signature 'none'; it has again, serving_default, sums"));
  EXPECT_FALSE(read(with_signatures(), {}, {.signature = "__saved_model_init_op"}));
}

TEST(Signatures, WithoutTheUsualOneAreNotGuessed) {
  Model model = with_signatures();
  model.signature = "other";
  EXPECT_THAT(error_of(model), HasSubstr("'signatures' in serin.yaml or --signature chooses among again, other, sums"));
  EXPECT_TRUE(read(model, {}, {.signature = "other"}));
}

TEST(Signatures, ShareTheirWeights) {
  const Folder folder;
  const Model model = with_signatures();
  folder.write("saved_model.pb", model.proto());
  for (const auto& [name, bytes] : model.files) folder.write(name, bytes);
  SharedConstants weights;
  const auto graph_of = [&](const std::string& name) {
    return formats::read_saved_model(folder.file("saved_model.pb"), {}, {}, {.signature = name, .weights = &weights});
  };
  const auto weight_of = [](const graph::Graph& graph) { return graph.constant(graph.input(graph.nodes().front(), 1)); };
  const auto standard = graph_of(""), again = graph_of("again"), sums = graph_of("sums");
  ASSERT_TRUE(standard && again && sums);
  EXPECT_EQ(weight_of(*standard), weight_of(*sums));
  EXPECT_TRUE(graph::same_graph(*standard, *again));
  EXPECT_FALSE(graph::same_graph(*standard, *sums));
  const auto alone = read(model);
  ASSERT_TRUE(alone);
  EXPECT_NE(weight_of(*standard), weight_of(*alone));
}

std::string bytes_proto(const std::vector<std::string>& texts) {
  std::string out;
  wire::write_integer(out, 1, 7);
  wire::write_bytes(out, 2, shape_proto({static_cast<int64_t>(texts.size())}));
  for (const std::string& text : texts) wire::write_bytes(out, 8, text);
  return out;
}
std::string attr_list(uint32_t field, const std::vector<int64_t>& types) {
  std::string out;
  wire::write_message(out, 1, [&](std::string& list) {
    for (const int64_t type : types) write_i64(list, field, type);
  });
  return out;
}
std::string attr_shapes(const std::vector<Shape>& shapes) {
  std::string out;
  wire::write_message(out, 1, [&](std::string& list) {
    for (const Shape& shape : shapes) wire::write_bytes(list, 7, shape_proto(shape));
  });
  return out;
}

/// A function whose result is one output of ParseExampleV2: sparse "s" (i64), dense "a" (f32 [2]) and "b" (f32 of any length).
Model with_examples(const std::string& result) {
  const std::string empty = bytes_proto({});
  Model model;
  model.nodes = {{"x", "Placeholder", {}, {}}, {"y", "PartitionedCall", {"x"}, {{"f", attr_function("parse")}}}};
  model.functions = {{"parse",
                      {"p"},
                      {constant("none", 7, empty),
                       constant("sparse", 7, bytes_proto({"s"})),
                       constant("dense", 7, bytes_proto({"a", "b"})),
                       floats("d", {0}, {}),
                       floats("zero", {}, {0}),
                       {"parsed",
                        "ParseExampleV2",
                        {"p", "none:output:0", "sparse:output:0", "dense:output:0", "none:output:0", "d:output:0", "zero:output:0"},
                        {{"num_sparse", attr_int(1)},
                         {"sparse_types", attr_list(6, {9})},
                         {"Tdense", attr_list(6, {1, 1})},
                         {"dense_shapes", attr_shapes({{2}, {-1}})}}}},
                      {{"r", "parsed:" + result}}}};
  model.inputs = {{"x", "x:0", 7, {-1}}};
  model.outputs = {{"y", "y:0", 1, {}}};
  return model;
}

TEST(Examples, OutputsAreFoundByNameAndPlace) {
  const auto type_of = [](const std::string& result) {
    const auto graph = read(with_examples(result));
    return graph ? graph::print(graph->value(graph->outputs()[0]).type) : graph.error().message;
  };
  EXPECT_THAT(type_of("sparse_indices:0"), HasSubstr(",2]"));
  EXPECT_THAT(type_of("sparse_values:0"), ::testing::StartsWith("i64[?"));
  EXPECT_EQ(type_of("sparse_shapes:0"), "i64[2]");
  EXPECT_EQ(type_of("dense_values:0"), "f32[batch,2]");
  EXPECT_THAT(type_of("dense_values:1"), ::testing::StartsWith("f32[batch,"));
  EXPECT_THAT(type_of("dense_values:2"), HasSubstr("reads output dense_values 2"));
  EXPECT_THAT(type_of("nothing:0"), HasSubstr("reads output nothing 0"));
}

TEST(Examples, AttributesThatContradictTheKeysAreRefused) {
  const auto with = [](const std::string& key, const std::string& value) {
    Model model = with_examples("sparse_shapes:0");
    model.functions[0].nodes.back().attrs[key] = value;
    return error_of(model);
  };
  EXPECT_THAT(with("Tdense", attr_list(6, {1})), HasSubstr("2 names of features, and 1 types"));
  EXPECT_THAT(with("sparse_types", attr_list(6, {2})), HasSubstr("must be f32, i64 or str"));
  EXPECT_THAT(with("dense_shapes", attr_shapes({{2}})), HasSubstr("not as many shapes"));
  EXPECT_THAT(with("dense_shapes", attr_shapes({{2}, {3, -1}})), HasSubstr("unknown shape"));
  EXPECT_THAT(with("dense_shapes", attr_shapes({{2}, {-1, 3}})), HasSubstr("list of tensors"));
  EXPECT_THAT(with("num_sparse", attr_int(-5)), HasSubstr("has 1 sparse features, num_sparse is -5"));
}

/// A vocabulary of three words, numbered as TensorFlow 1 does: Cast(Range(from, to, step)).
Model with_vocabulary(int32_t from, int32_t to, int32_t step, int64_t dtype = 9) {
  const auto scalar = [](std::string name, int32_t value) { return constant(std::move(name), 3, tensor_proto<int32_t>(3, {}, {value})); };
  Model model;
  model.nodes = {{"x", "Placeholder", {}, {}},
                 {"table", "HashTableV2", {}, {}},
                 constant("keys", 7, bytes_proto({"a", "b", "c"})),
                 scalar("from", from),
                 scalar("to", to),
                 scalar("step", step),
                 {"range", "Range", {"from", "to", "step"}, {}},
                 {"numbers", "Cast", {"range"}, {{"DstT", attr_type(dtype)}}},
                 {"fill", "LookupTableImportV2", {"table", "keys", "numbers"}, {}},
                 constant("other", 9, tensor_proto<int64_t>(9, {}, {-1})),
                 {"y", "LookupTableFindV2", {"table", "x", "other"}, {}}};
  model.init_op = "fill";
  model.inputs = {{"x", "x:0", 7, {-1}}};
  model.outputs = {{"y", "y:0", 9, {-1}}};
  return model;
}

TEST(Vocabularies, AreNumberedByRangeAndCast) {
  const auto graph = read(with_vocabulary(0, 3, 1));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(graph::print(*graph), HasSubstr("values_int64s=[0,1,2]"));
  EXPECT_THAT(error_of(with_vocabulary(0, 4, 1)), HasSubstr("3 keys and 4 values"));
  for (const Model& model :
       {with_vocabulary(0, 3, 0), with_vocabulary(0, INT32_MAX, 1), with_vocabulary(-1, 2, 1), with_vocabulary(0, 3, 1, 1)})
    EXPECT_THAT(error_of(model), HasSubstr("computes"));
  Model loop = with_vocabulary(0, 3, 1);
  loop.nodes[6].inputs[0] = "numbers";
  EXPECT_FALSE(read(loop)) << "it depends on itself";
}

}  // namespace
}  // namespace serin::formats::tf
