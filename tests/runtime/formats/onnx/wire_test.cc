// M3: bytes that are no protobuf, and graphs that are built to exhaust memory or the stack.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/wire.h"
#include "tests/runtime/formats/onnx/encode.h"

namespace serin::formats {
namespace {

using ::testing::HasSubstr;

/// The error of a file that begins like a model and goes on with these bytes.
std::string error_after(std::string_view bytes) { return error_of(read(Encoder().number(1, 8).raw(bytes))); }

TEST(Wire, M3VarintOfMoreThanTenBytes) {
  EXPECT_THAT(error_after(std::string(11, '\xff')), HasSubstr("byte 2: ModelProto: a number of more than 64 bits"));
  EXPECT_THAT(error_after("\x28" + std::string(9, '\xff') + "\x02"), HasSubstr("field 5 of ModelProto: a number of more than 64 bits"));
}

TEST(Wire, M3LengthPastTheEnd) {
  EXPECT_THAT(error_after("\x3a\x7f"
                          "abc"),
              HasSubstr("byte 2: field 7 of ModelProto: length 127, but 3 bytes are left"));
  EXPECT_THAT(error_after(Encoder().varint(7 << 3 | 2).varint(UINT64_MAX).str()), HasSubstr("length 18446744073709551615"));
}

TEST(Wire, M3Groups) {
  EXPECT_THAT(error_after("\x0b"), HasSubstr("a group"));
  EXPECT_THAT(error_after("\x0c"), HasSubstr("a group"));
}

TEST(Wire, M3WireTypesThatDoNotExist) {
  EXPECT_THAT(error_after("\x0e"), HasSubstr("wire type 6 does not exist"));
  EXPECT_THAT(error_after("\x0f"), HasSubstr("wire type 7 does not exist"));
}

TEST(Wire, M3FieldZeroAndBeyond) {
  EXPECT_THAT(error_after(std::string(2, '\0')), HasSubstr("byte 2: ModelProto: no such field: tag 0"));
  EXPECT_THAT(error_after(Encoder().varint(uint64_t{1} << 32).varint(0).str()), HasSubstr("no such field"));
}

TEST(Wire, M3AnotherWireTypeThanTheFieldHas) {
  EXPECT_THAT(error_of(read(Encoder().bytes(1, "eight"))), HasSubstr("field 1 of ModelProto: wire type 2 where 0 belongs"));
  EXPECT_THAT(error_of(read(Encoder().number(7, 1))), HasSubstr("field 7 of ModelProto: wire type 0 where 2 belongs"));
}

TEST(Wire, M3NumbersCutShort) {
  EXPECT_THAT(error_after("\x21\x01\x02"), HasSubstr("2 bytes are left of a number of 8"));
  EXPECT_THAT(error_after("\x25\x01\x02\x03"), HasSubstr("3 bytes are left of a number of 4"));
}

TEST(Wire, M3UnknownFieldsAreSkipped) {
  const Encoder relu = node("Relu", "r", {"x"}, {"y"}).number(99, 5).bytes(98, "anything").real(97, 1.F);
  const auto graph = read(model(13, {{relu}, {}, {value("x", {"n"})}, {value("y", {})}}).number(4000, 1));
  EXPECT_TRUE(graph) << graph.error().message;
}

TEST(Wire, M3SingularFieldsComeOnce) {
  const GraphParts parts{{node("Relu", "r", {"x"}, {"y"})}, {}, {value("x", {"n"})}, {value("y", {})}};
  EXPECT_THAT(error_of(read(model(13, parts).message(7, graph(parts)))), HasSubstr("field 7 of ModelProto: comes twice"));
}

TEST(Wire, M3TextThatIsNotUtf8) {
  EXPECT_THAT(error_of(read(model(13, {{node("Relu", "\xff\xfe", {"x"}, {"y"})}, {}, {value("x", {"n"})}, {value("y", {})}}))),
              HasSubstr("not UTF-8"));
}

/// An If within an If within ...: `depth` bodies.
Encoder nested(int depth) {
  Encoder body = graph({{node("Identity", "i", {"x"}, {"y"})}, {}, {}, {value("y", {})}});
  for (int i = 0; i < depth; ++i)
    body = graph({{node("If", "if", {"c"}, {"y"},
                        {graph_attribute("then_branch", body),
                         graph_attribute("else_branch", graph({{node("Identity", "i", {"x"}, {"y"})}, {}, {}, {value("y", {})}}))})},
                  {},
                  i + 1 < depth ? std::vector<Encoder>{} : std::vector<Encoder>{value("c", {}, 9), value("x", {"n"})},
                  {value("y", {})}});
  return model(13, body);
}

TEST(Wire, M6BodiesWithinBodies) {
  EXPECT_TRUE(read(nested(20))) << error_of(read(nested(20)));
  EXPECT_THAT(error_of(read(nested(100))), HasSubstr("graphs within graphs, more than"));
  EXPECT_THAT(error_of(read(nested(2000))), HasSubstr("graphs within graphs, more than"));
}

TEST(Wire, M3NestingOfUnknownFieldsCostsNothing) {
  std::string deep;
  for (int i = 0; i < 2000; ++i) deep = Encoder().bytes(50, deep).str();
  const auto graph = read(model(13, {{node("Relu", "r", {"x"}, {"y"})}, {}, {value("x", {"n"})}, {value("y", {})}}).bytes(50, deep));
  EXPECT_TRUE(graph) << graph.error().message;
}

TEST(Wire, M6MoreNodesThanTheLimit) {
  GraphParts parts{{}, {}, {value("x", {"n"})}, {value("x", {})}};
  for (int i = 0; i < 11; ++i) parts.nodes.push_back(node("Relu", "", {"x"}, {"y" + std::to_string(i)}));
  EXPECT_TRUE(read(model(13, parts), {.nodes = 11}));
  EXPECT_THAT(error_of(read(model(13, parts), {.nodes = 10})), HasSubstr("more than 10 nodes"));
}

TEST(Wire, M6EmptyMessagesAreCounted) {  // two bytes each in the file, some hundred once decoded
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "\x0a\x00"[0], many += '\0';
  const auto graph = read(Encoder().number(1, 8).bytes(7, many), {.nodes = 1000});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, Code::kTooLarge) << graph.error().message;
}

}  // namespace
}  // namespace serin::formats
