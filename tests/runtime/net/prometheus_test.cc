// Answers of a Prometheus server, good and bad. Real servers are asked in tests/e2e/router/test_prometheus.py and tests/e2e/runtime/test_plan_prometheus.py.

#include "runtime/net/prometheus.h"

#include <gmock/gmock.h>

#include "tests/runtime/net/test_server.h"

namespace serin::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string vector_of(const std::string& results, const std::string& more = "") {
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + results + "]}" + more + "}";
}

Result<double> number_in(std::string_view body) {
  SERIN_TRY(const PrometheusAnswer answer, read_prometheus_answer(body));
  return answer.one_number();
}

TEST(PrometheusAnswer, IsOneNumber) {
  EXPECT_EQ(number_in(vector_of(R"({"metric":{"job":"x"},"value":[1700000000.5,"12.5"]})")).value(), 12.5);
  EXPECT_EQ(number_in(R"({"status":"success","data":{"resultType":"scalar","result":[1,"-3e2"]}})").value(), -300);
}

TEST(PrometheusAnswer, HasLabelsAndWarnings) {
  const auto answer = read_prometheus_answer(vector_of(
      R"({"metric":{"a":"1","b":"\"\u00e9"},"value":[1,"2"]},{"metric":{},"value":[1,"NaN"]})", R"(,"warnings":["a store is gone"])"));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->series[0].label("a"), "1");
  EXPECT_EQ(answer->series[0].label("b"), "\"\u00e9");
  EXPECT_EQ(answer->series[0].label("c"), "");
  EXPECT_EQ(answer->series[1].number().error().code, Code::kOutOfRange);
  EXPECT_THAT(answer->warnings, ElementsAre("a store is gone"));
}

// Bad input R9 (tests/README.md)
TEST(PrometheusAnswer, R9IsNoNumberWhereItIsAbsentOrNotANumber) {
  const std::string sample = R"({"metric":{},"value":[1,"1"]})";
  for (const auto& [body, words] : std::initializer_list<std::pair<std::string, const char*>>{
           {vector_of(""), "0 series"},
           {vector_of(sample + "," + sample), "2 series"},
           {vector_of(R"({"metric":{},"value":[1,"NaN"]})"), "NaN"},
           {vector_of(R"({"metric":{},"value":[1,"+Inf"]})"), "+Inf"},
           {vector_of(R"({"metric":{},"value":[1,"many"]})"), "many"},
           {vector_of(R"({"metric":{},"value":[1]})"), "no value"},
           {vector_of(R"({"metric":{},"value":[1,2]})"), "no value"},
           {vector_of(R"({"metric":{}})"), "value"},
           {vector_of("7"), "value"},
           {R"({"status":"success","data":{"resultType":"matrix","result":[]}})", "matrix"},
           {R"({"status":"success","data":{"resultType":"vector","result":{}}})", "vector"},
           {R"({"status":"success"})", "data"},
           {R"({"status":"error","errorType":"bad_data","error":"parse error: unexpected end"})", "parse error"},
           {"<html>", "no answer of Prometheus"},
           {"", "no answer of Prometheus"},
           {"[]", "no answer of Prometheus"},
           {"[1, 2", ""},
           {std::string(2 << 20, '['), ""}}) {
    const auto answer = number_in(body);
    ASSERT_FALSE(answer) << body.substr(0, 100);
    EXPECT_THAT(answer.error().message, HasSubstr(words)) << body.substr(0, 100);
  }
}

TEST(Prometheus, AStatusIsTheReasonWhereTheServerGivesNone) {
  Loops loops(1);
  int status = 200;
  std::string body, path, asked, token;
  const auto server = Server::start(loops, {}, [&](const Request& request, Responder to) {
    path = request.path;
    asked = request.body;
    token = request.headers.get("authorization");
    Response response;
    response.status = status;
    response.body = body;
    to.send(std::move(response));
  });
  ASSERT_TRUE(server) << server.error().message;
  const PrometheusServer prometheus{.server = *parse_url("http://127.0.0.1:" + std::to_string((*server)->port()) + "/prefix"),
                                    .token = "secret"};
  const auto ask = [&](int answers, std::string with) {
    status = answers;
    body = std::move(with);
    return ask_prometheus(prometheus, {.query = "up{a=\"b\"}", .lookback = std::chrono::milliseconds(200), .time = 1e9 + 0.5});
  };
  EXPECT_EQ(ask(200, vector_of(R"({"metric":{},"value":[1,"5"]})"))->one_number().value(), 5);
  EXPECT_EQ(path, "/prefix/api/v1/query");
  EXPECT_EQ(asked, "query=up%7Ba%3D%22b%22%7D&lookback_delta=0.200&time=1000000000.500");
  EXPECT_EQ(token, "Bearer secret");
  for (const auto& [answers, with, words] : std::initializer_list<std::tuple<int, std::string, const char*>>{
           {401, "Unauthorized", "the server answers 401: it requires credentials"},
           {503, vector_of(R"({"metric":{},"value":[1,"5"]})"), "the server answers 503"},
           {422, R"({"status":"error","error":"too many samples"})", "the server refuses: too many samples"},
           {200, "<html>", "no answer of Prometheus"}})
    EXPECT_THAT(ask(answers, with).error().message, HasSubstr(words));
}

TEST(Prometheus, QuotesTextsAsItsLanguageDoes) { EXPECT_EQ(prometheus_quoted("a\"b\\c\nd"), R"("a\"b\\c\nd")"); }

}  // namespace
}  // namespace serin::net
