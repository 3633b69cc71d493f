// classify_test.cc: the class of a request in each slice, and the values that are none.

#include "router/proxy/classify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace serin::router {
namespace {

using rollout::Slice;
using testing::ElementsAre;

const std::vector<Slice> kSlices{{.by = Slice::By::kHeader, .name = "country", .key = "x-country"},
                                 {.by = Slice::By::kJson, .name = "language", .key = "/parameters/language"},
                                 {.by = Slice::By::kBytes, .name = "size", .bounds = {100, 1000}},
                                 {.by = Slice::By::kLabel, .name = "digit"}};
constexpr char kBody[] = R"({"parameters": {"language": "de"}})";

std::vector<std::string> classes(const net::Headers& headers, std::string_view body, bool complete = true,
                                 std::optional<uint64_t> length = {}) {
  protocol::JsonPointerReader json;
  return *classify(kSlices, {.headers = headers, .body = body, .complete = complete, .length = length}, json);
}

net::Headers with(std::string_view name, std::string_view value) {
  net::Headers headers;
  headers.add(name, value);
  return headers;
}

TEST(Classify, ByHeaderFieldAndSize) {
  EXPECT_THAT(classes(with("X-Country", "fr"), kBody), ElementsAre("fr", "de", "0-99", ""));
  EXPECT_THAT(classes({}, std::string(100, ' ')), ElementsAre("", "", "100-999", ""));
  EXPECT_THAT(classes({}, "", false, 5000), ElementsAre("", "", "1000+", "")) << "a body that is still on its way has its length only";
  EXPECT_THAT(classes({}, kBody, false), ElementsAre("", "", "", ""));
  protocol::JsonPointerReader json;
  EXPECT_EQ(classify({}, {.headers = {}, .body = kBody, .complete = true}, json), nullptr);
}

TEST(Classify, ReadsTheJsonBeforeBinaryTensors) {
  std::string body = kBody;
  body.append("\x01\x02{");
  EXPECT_EQ(classes(with("Inference-Header-Content-Length", std::to_string(sizeof kBody - 1)), body)[1], "de");
  EXPECT_EQ(classes(with("Inference-Header-Content-Length", "999999"), body)[1], "");
  EXPECT_EQ(classes(with("Content-Encoding", "gzip"), kBody)[1], "");
}

TEST(Classify, RefusesValuesThatALogCannotHave) {
  for (const char* value : {"a\"b", "a\\b", "it's", "\xff\xfe", "a\u009b31m", "a\u202eb", "a\u2066b", "a\u2028b"})
    EXPECT_EQ(classes(with("x-country", value), "")[0], "") << value;
  for (const char* escape : {"\\n", "\\u0000", "\\u007f", "\\\"", "\\\\"})
    EXPECT_EQ(classes({}, fmt::format(R"({{"parameters": {{"language": "a{}"}}}})", escape))[1], "") << escape;
  EXPECT_EQ(classes(with("x-country", std::string(64, 'a')), "")[0].size(), 64U);
  EXPECT_EQ(classes(with("x-country", std::string(65, 'a')), "")[0], "");
  EXPECT_EQ(classes(with("x-country", "中国"), "")[0], "中国");
}

TEST(Classify, ByStablesLabelOnceItIsKnown) {
  protocol::JsonPointerReader json;
  const auto before = classify(kSlices, {.headers = {}, .body = kBody, .complete = true}, json);
  EXPECT_THAT(*with_label(before, kSlices, rollout::Difference{.stable_label = 7}), ElementsAre("", "de", "0-99", "7"));
  EXPECT_EQ(with_label(before, kSlices, std::nullopt), before);
  EXPECT_EQ(with_label(nullptr, {}, rollout::Difference{}), nullptr);
}

}  // namespace
}  // namespace serin::router
