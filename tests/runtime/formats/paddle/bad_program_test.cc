// Programs that cannot be read, and why: rows M1 to M12 and M14 of bad input.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/formats/paddle/pir.h"
#include "runtime/formats/paddle/program.h"
#include "tests/runtime/formats/paddle/encode.h"

namespace serin::formats {
namespace {

using ::testing::HasSubstr;

std::string error_of(const Result<graph::Graph>& graph) { return graph ? "(it was read)" : graph.error().message; }
std::string desc_error(const std::vector<Encoder>& ops, const std::vector<Encoder>& vars = {}) {
  return error_of(read(small_program(vars, ops), small_parameters()));
}
std::string pir_error(const std::string& text) { return error_of(read_pir(text, small_parameters())); }

TEST(PaddleM1, NoFile) {
  const Folder folder;
  EXPECT_EQ(read_paddle(folder / "m.pdmodel").error().code, Code::kNotFound);
  ::mkdir((folder / "m.pdmodel").c_str(), 0755);
  EXPECT_EQ(read_paddle(folder / "m.pdmodel").error().code, Code::kInvalidArgument);
  ASSERT_EQ(::mkfifo((folder / "m.json").c_str(), 0600), 0);
  EXPECT_EQ(read_paddle(folder / "m.json").error().code, Code::kInvalidArgument);
  ASSERT_EQ(::symlink("loop.json", (folder / "loop.json").c_str()), 0);
  EXPECT_FALSE(read_paddle(folder / "loop.json"));
  folder.write("one.pdmodel", "\x0a").write("none.json", "");
  EXPECT_EQ(read_paddle(folder / "one.pdmodel").error().code, Code::kCorrupt);
  EXPECT_THAT(error_of(read_paddle(folder / "none.json")), HasSubstr("an empty file"));
}

TEST(PaddleM1, TooLarge) {
  const Folder folder;
  folder.write("m.pdmodel", small_program()).write("m.pdiparams", small_parameters());
  EXPECT_EQ(read_paddle(folder / "m.pdmodel", {}, {.program_bytes = 10}).error().code, Code::kTooLarge);
  EXPECT_EQ(read_paddle(folder / "m.pdmodel", {}, {.operations = 0}).error().code, Code::kTooLarge);
  folder.write("m.json", small_pir());
  EXPECT_FALSE(read_paddle(folder / "m.json", {}, {.operations = 2}));
}

TEST(PaddleM3, WireFormat) {
  EXPECT_THAT(error_of(read("\x0b\x0c", "")), HasSubstr("obsolete form"));
  EXPECT_FALSE(read(std::string("\x02\x01", 2), ""));                                         // field 0
  EXPECT_FALSE(read("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ""));                 // a length of more than 64 bits
  EXPECT_FALSE(read(program({block({var("\xff\xfe", {1})}, {})}), ""));                       // no UTF-8
  EXPECT_TRUE(read(small_program() + Encoder().bytes(77, "new").str(), small_parameters()));  // an unknown field
  EXPECT_THAT(desc_error({op("relu", {{"X", {"m"}}}, {{"Out", {"q"}}}, {attribute("a", 1), attribute("a", 2)})}),
              HasSubstr("attribute 'a' comes twice"));
}

TEST(PaddleM3, Json) {
  for (const char* const text :
       {"[", "{", "{}", "[]", "null", "{\"base_code\":1}", "{\"a\":1,}", "tru", "\"", "{\"a\":\"\\ud800\"}", "1e999", "{} {}"})
    EXPECT_EQ(read_pir(text, "").error().code, Code::kCorrupt) << text;
  EXPECT_EQ(read_pir(std::string(1 << 20, '['), "").error().code, Code::kCorrupt);
  std::string deep = "{\"a\":";
  for (int i = 0; i < 18; ++i) deep += deep;
  EXPECT_EQ(read_pir(deep, "").error().code, Code::kCorrupt);
  EXPECT_THAT(pir_error(small_pir() + "x"), HasSubstr("no JSON"));
}

TEST(PaddleM4, OtherFiles) {
  for (const char* const file : {"m.pdmodel", "m.json"}) {
    EXPECT_THAT(error_of(read("<html><body>404</body></html>", "", file)), HasSubstr("an HTML page"));
    EXPECT_THAT(error_of(read("version https://git-lfs.github.com/spec/v1\n", "", file)), HasSubstr("a Git LFS pointer"));
    EXPECT_THAT(error_of(read(std::string("\x80\x02}q\x01", 5), "", file)), HasSubstr("a Python pickle"));
    EXPECT_THAT(error_of(read(std::string("PK\x03\x04") + std::string(60, 'a'), "", file)), HasSubstr("a zip archive"));
  }
  EXPECT_THAT(error_of(read(small_pir(), small_parameters(), "m.pdmodel")), HasSubstr("not a program of Paddle but a JSON document"));
  EXPECT_THAT(pir_error("{\"model\": {}}"), HasSubstr("has no 'base_code' of PIR"));
}

TEST(PaddleM5, Versions) {
  EXPECT_THAT(error_of(read(program({block({}, {})}, 9'000'000), "")), HasSubstr("has program version 9000000"));
  EXPECT_EQ(read_pir(small_pir("", "5"), small_parameters()).error().code, Code::kUnsupported);
  EXPECT_THAT(pir_error(small_pir("", "99")), HasSubstr("has PIR version 99; 0 to 4 are read"));
}

TEST(PaddleM5, UnknownOperatorsAreAllNamed) {
  const std::string error =
      desc_error({op("frobnicate", {{"X", {"m"}}}, {{"Out", {"q"}}}), op("conv9d", {{"X", {"m"}}}, {{"Out", {"r"}}})});
  EXPECT_THAT(error, HasSubstr("2 operations use operators that are not supported: 'q' (frobnicate), 'r' (conv9d)"));
  const std::string none = R"("A":[],"I":[],"O":[]},)";
  EXPECT_THAT(pir_error(small_pir(R"({"#":"1.warpctc",)" + none + R"({"#":"3.my_op",)" + none)),
              HasSubstr("'warpctc' (warpctc), 'my_op' (my_op)"));
}

TEST(PaddleM6, Graphs) {
  EXPECT_THAT(error_of(read(program({block({var("x", {1})}, {feed("x")})}), "")), HasSubstr("has no outputs (fetch)"));
  EXPECT_THAT(error_of(read(program({block({var("x", {1})}, {fetch("x")})}), "")), HasSubstr("has no inputs (feed)"));
  EXPECT_THAT(error_of(read(program({block({var("x", {1})}, {feed("x"), feed("x", 1), fetch("x")})}), "")),
              HasSubstr("has input 'x' twice"));
  EXPECT_THAT(error_of(read(program({block({var("x", {1})}, {feed("x", 3), fetch("x")})}), "")),
              HasSubstr("not numbered one after another"));
  EXPECT_THAT(desc_error({op("relu", {{"X", {"later"}}}, {{"Out", {"q"}}})}),
              HasSubstr("value 'later' is read before anything defines it"));
  EXPECT_THAT(pir_error(small_pir("", "4", "99")), HasSubstr("value '%99' is read before"));
  EXPECT_THAT(error_of(read(program({}), "")), HasSubstr("has no block"));
  EXPECT_THAT(desc_error({}, {var("w", {2, 3}, true)}), HasSubstr("declared twice"));
  EXPECT_THAT(pir_error(small_pir(R"({"#":"1.relu","A":[],"I":[{"%":3}],"O":[{"%":4,"TT":{}}]},)")),
              HasSubstr("value %4 is defined twice"));
}

/// An array holds what is appended to it, one element after the other.
TEST(PaddleM6, Arrays) {
  const Encoder list = Encoder().bytes(1, "list").message(2, Encoder().number(1, 13)).number(3, 0);
  const auto place = [](float value) {
    return op("fill_constant", {}, {{"Out", {"i"}}},
              {attribute("shape", Dims{1}), attribute("dtype", kI64), real_attribute("value", value)});
  };
  const Encoder write = op("write_to_array", {{"X", {"x"}}, {"I", {"i"}}}, {{"Out", {"list"}}});
  const Encoder join = op("tensor_array_to_tensor", {{"X", {"list"}}}, {{"Out", {"q"}}}, {attribute("axis", 0), attribute("use_stack", 1)});
  EXPECT_THAT(desc_error({place(3), write, join}, {list}), HasSubstr("array_write before the end of the array"));
  EXPECT_THAT(desc_error({place(0), write, write, join}, {list}), HasSubstr("array_write before the end of the array"));
  EXPECT_THAT(desc_error({join}, {list}), HasSubstr("array_to_tensor of an empty array"));
  EXPECT_THAT(desc_error({place(0), op("read_from_array", {{"X", {"list"}}, {"I", {"i"}}}, {{"Out", {"q"}}})}, {list}),
              HasSubstr("reads an element of an empty array"));
  EXPECT_THAT(desc_error({op("lod_array_length", {{"X", {"x"}}}, {{"Out", {"q"}}})}), HasSubstr("an array that nothing has made"));
  EXPECT_THAT(desc_error({op("relu", {{"X", {"list"}}}, {{"Out", {"q"}}})}, {list}), HasSubstr("operand 'X' of relu is missing"));
}

/// Blocks that run each other, or nest without an end.
TEST(PaddleM6, Bodies) {
  const auto run = [](int64_t body) { return op("while", {{"Condition", {"m"}}, {"X", {}}}, {{"Out", {}}}, {block_attribute(body)}); };
  const auto with = [&](const std::vector<Encoder>& blocks) {
    std::vector<Encoder> all{block({var("x", {-1, 2}), var("m", {1})}, {feed("x"), run(1), fetch("x")})};
    all.insert(all.end(), blocks.begin(), blocks.end());
    return error_of(read(program(all), ""));
  };
  EXPECT_THAT(with({}), HasSubstr("runs block 1, which is not a body of its own"));
  EXPECT_THAT(with({block({}, {run(1)}, 1)}), HasSubstr("runs block 1"));
  EXPECT_THAT(with({block({}, {run(0)}, 1)}), HasSubstr("runs block 0"));
  EXPECT_THAT(with({block({}, {run(2), run(2)}, 1), block({}, {}, 2)}), HasSubstr("runs block 2"));
  std::vector<Encoder> nested;
  for (int64_t i = 1; i < 10'000; ++i) nested.push_back(block({}, {run(i + 1)}, i));
  nested.push_back(block({}, {}, 10'000));
  EXPECT_THAT(with(nested), HasSubstr("bodies nest more than 24 deep"));
}

TEST(PaddleM7, Inputs) {
  const Dims many(40, 1);
  EXPECT_THAT(error_of(read(program({block({var("x", many)}, {feed("x"), fetch("x")})}), "")), HasSubstr("input 'x' has 40 dimensions"));
  EXPECT_THAT(error_of(read(program({block({var("x", {1}, false, 23)}, {feed("x"), fetch("x")})}), "")),
              HasSubstr("input 'x' is no tensor"));
}

TEST(PaddleM9, Attributes) {
  const auto conv = [](const std::vector<Encoder>& attributes) {
    return error_of(read(
        program({block({var("x", {-1, 4, 8, 8}), var("w", {4, 4, 3, 3}, true), var("y", {-1, 4, 8, 8})},
                       {feed("x"), op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"y"}}}, attributes), fetch("y")})}),
        stored_tensor(kF32, {4, 4, 3, 3}, std::string(4 * 4 * 9 * 4, '\0'))));
  };
  EXPECT_EQ(conv({}), "(it was read)");
  EXPECT_NE(conv({attribute("strides", Dims{0, 1})}), "(it was read)");
  EXPECT_NE(conv({attribute("dilations", Dims{0, 0})}), "(it was read)");
  EXPECT_NE(conv({attribute("groups", 3)}), "(it was read)");
  EXPECT_NE(conv({attribute("groups", 0)}), "(it was read)");
  EXPECT_NE(conv({attribute("paddings", Dims{int64_t{1} << 62, 1})}), "(it was read)");
  EXPECT_THAT(conv({attribute("strides", Dims{1, 1, 1})}), HasSubstr("another number of axes"));
  EXPECT_THAT(conv({text_attribute("strides", "two")}), HasSubstr("no list of integers"));
  EXPECT_THAT(desc_error({op("transpose2", {{"X", {"m"}}}, {{"Out", {"q"}}}, {attribute("axis", Dims{5, 0})})}),
              HasSubstr("axis 5 of a tensor of rank 2"));
  EXPECT_NE(desc_error({op("transpose2", {{"X", {"m"}}}, {{"Out", {"q"}}}, {attribute("axis", Dims{0, 0})})}), "(it was read)");
  EXPECT_NE(desc_error({op("reshape2", {{"X", {"m"}}}, {{"Out", {"q"}}}, {attribute("shape", Dims{-1, -1})})}), "(it was read)");
  EXPECT_THAT(desc_error({op("reshape2", {{"X", {"m"}}}, {{"Out", {"q"}}})}), HasSubstr("reshape without a shape"));
  EXPECT_THAT(desc_error({op("relu", {}, {{"Out", {"q"}}})}), HasSubstr("operand 'X' of relu is missing"));
  EXPECT_THAT(
      desc_error({op("split", {{"X", {"m"}}}, {{"Out", {"q", "r"}}}, {attribute("axis", 1), attribute("sections", Dims{1, 1, 1})})}),
      HasSubstr("another number of parts"));
  EXPECT_THAT(desc_error({op("pool2d", {{"X", {"m"}}}, {{"Out", {"q"}}}, {attribute("ksize", Dims{2, 2})})}), HasSubstr("no image"));
  EXPECT_THAT(desc_error({op("squeeze2", {{"X", {"m"}}}, {{"Out", {"q"}}}, {attribute("axes", Dims{7})})}), HasSubstr("axis 7"));
  EXPECT_THAT(desc_error({op("cast", {{"X", {"m"}}}, {{"Out", {"q"}}}, {attribute("out_dtype", 23)})}),
              HasSubstr("the type that attribute"));
}

TEST(PaddleM10, ContradictingShapes) {
  EXPECT_THAT(desc_error({op("matmul_v2", {{"X", {"m"}}, {"Y", {"w"}}}, {{"Out", {"q"}}})}), HasSubstr("node 'q'"));
  const Folder folder;
  folder.write("m.pdmodel", small_program()).write("m.pdiparams", small_parameters());
  EXPECT_EQ(read_paddle(folder / "m.pdmodel", {"x"}).error().code, Code::kInvalidArgument);
}

TEST(PaddleM11, Scales) {
  const auto quantised = [](std::vector<float> scale) {
    const auto vars = std::vector<Encoder>{var("x", {-1, 4}), var("s", {static_cast<int64_t>(scale.size())}, true), var("y", {-1, 4})};
    return error_of(read(
        program(
            {block(vars, {feed("x"), op("quantize_linear", {{"X", {"x"}}, {"Scale", {"s"}}}, {{"Y", {"y"}}}, {attribute("quant_axis", 1)}),
                          fetch("y")})}),
        stored_tensor(kF32, {static_cast<int64_t>(scale.size())}, raw_bytes(scale))));
  };
  EXPECT_EQ(quantised({1.5F}), "(it was read)");
  EXPECT_THAT(quantised({0}), HasSubstr("not positive"));
  EXPECT_THAT(quantised({-1}), HasSubstr("not positive"));
  EXPECT_THAT(quantised({std::numeric_limits<float>::quiet_NaN()}), HasSubstr("not positive"));
  EXPECT_NE(quantised({1, 2, 3}), "(it was read)");
}

TEST(PaddleM11, ChannelsOfANumber) {
  const auto vars = std::vector<Encoder>{var("x", {-1, 4}), var("w", {}, true), var("y", {}), var("s", {1})};
  const Encoder quantise = op("fake_channel_wise_quantize_abs_max", {{"X", {"w"}}}, {{"Out", {"y"}}, {"OutScale", {"s"}}});
  EXPECT_THAT(error_of(read(program({block(vars, {feed("x"), quantise, fetch("y")})}), stored_tensor(kF32, {}, raw_bytes<float>({1})))),
              HasSubstr("axis 0 of a tensor of rank 0"));
}

TEST(PaddleM12, SizesThatNoMachineHas) {
  const auto made = [](const Dims& shape) {
    return error_of(read(
        program({block(
            {var("x", {-1, 4}), var("y", shape)},
            {feed("x"), op("fill_constant", {}, {{"Out", {"y"}}}, {attribute("shape", shape), attribute("dtype", kF32)}), fetch("y")})}),
        ""));
  };
  EXPECT_EQ(made({2, 3}), "(it was read)");
  EXPECT_NE(made({int64_t{1} << 30, int64_t{1} << 30}), "(it was read)");
  EXPECT_NE(made({-5}), "(it was read)");
}

}  // namespace
}  // namespace serin::formats
