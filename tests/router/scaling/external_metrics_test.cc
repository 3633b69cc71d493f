// external_metrics_test.cc: the answers that an API server and an autoscaler of Kubernetes read.

#include "router/scaling/external_metrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/base/config.h"

namespace serin::router {
namespace {

constexpr std::string_view kApi = "/apis/external.metrics.k8s.io/v1beta1";

net::Response ask(std::string path, std::string query = "", std::string method = "GET") {
  const ExternalMetrics api([] {
    return std::vector<VersionLoad>{{.service = "digits", .version = "1", .in_flight = 12, .requests_per_second = 7.25},
                                    {.service = "digits", .version = "2", .in_flight = 0, .requests_per_second = 0.1},
                                    {.service = "faces", .version = "a\"b", .in_flight = 1, .requests_per_second = 100}};
  });
  net::Request request;
  request.method = std::move(method);
  request.path = std::move(path);
  request.query = std::move(query);
  return api.answer(request);
}

std::string values_at(const std::string& metric, const std::string& query) {
  const net::Response response = ask(fmt::format("{}/namespaces/models/{}", kApi, metric), query);
  EXPECT_EQ(response.status, 200) << response.body;
  const auto root = config::Node::parse(response.body, "answer");
  EXPECT_TRUE(root) << response.body;
  std::string values;
  for (const config::Node& item : root->find("items")->items()) {
    EXPECT_EQ(*item.text("metricName", ""), metric);
    EXPECT_EQ(item.text("timestamp", "")->size(), 20u);
    values += *item.text("value", "") + " ";
  }
  return values;
}

TEST(ExternalMetrics, ListsItsMetrics) {
  const net::Response response = ask(std::string(kApi));
  EXPECT_EQ(response.headers.get("content-type"), "application/json");
  const auto root = config::Node::parse(response.body, "answer");
  ASSERT_TRUE(root) << response.body;
  EXPECT_EQ(*root->text("kind", ""), "APIResourceList");
  EXPECT_EQ(root->find("resources")->items().size(), 2u);
  EXPECT_NE(ask("/apis").body.find("APIGroupList"), std::string::npos);
  EXPECT_NE(ask("/apis/external.metrics.k8s.io").body.find("preferredVersion"), std::string::npos);
}

TEST(ExternalMetrics, GivesQuantitiesOfThoseThatAreSelected) {
  EXPECT_EQ(values_at("serin_route_in_flight_requests", ""), "12 0 1 ");
  EXPECT_EQ(values_at("serin_route_requests_per_second", "labelSelector=service%3Ddigits"), "7250m 100m ");
  EXPECT_EQ(values_at("serin_route_requests_per_second", "timeout=5s&labelSelector=service%3Ddigits%2Cversion+in+%282%2C3%29"), "100m ");
  EXPECT_EQ(values_at("serin_route_in_flight_requests", "labelSelector=service=nothing"), "");
}

TEST(ExternalMetrics, RefusesTheRest) {
  const std::string metric = fmt::format("{}/namespaces/models/serin_route_in_flight_requests", kApi);
  EXPECT_EQ(ask(metric, "labelSelector=a%3").status, 400);
  EXPECT_EQ(ask(metric, "labelSelector=a+b").status, 400);
  EXPECT_EQ(ask(metric, "", "POST").status, 405);
  EXPECT_EQ(ask(metric, "", "HEAD").status, 200);
  for (const std::string path :
       {"", "/namespaces", "/namespaces/models", "/namespaces/models/", "/namespaces//serin_route_in_flight_requests",
        "/namespaces/models/unknown", "/namespaces/models/serin_route_in_flight_requests/x"})
    EXPECT_EQ(ask(path.empty() ? "/" : std::string(kApi) + path).status, 404) << path;
  const auto root = config::Node::parse(ask("/").body, "answer");
  ASSERT_TRUE(root);
  EXPECT_EQ(*root->text("kind", ""), "Status");
}

}  // namespace
}  // namespace serin::router
