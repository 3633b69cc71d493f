// openapi.json and the types of the dashboard say what the descriptions of the answers say. After a change of a description
//
//   SERIN_REWRITE=1 build/tests/router_test --gtest_filter='Descriptions.*'
//
// writes both anew; then router/dashboard is built (its README.md).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "router/admin/gates.h"
#include "router/admin/openapi.h"
#include "router/admin/permissions.h"
#include "router/outcomes/outcomes.h"
#include "router/store/verdict_json.h"
#include "router/view/applied.h"
#include "router/view/history.h"
#include "router/view/service_list.h"
#include "router/view/status.h"
#include "router/view/timeline_columns.h"
#include "runtime/base/schema_text.h"

namespace serin::router {
namespace {

const std::string kRoot = SERIN_TEST_DATA "/../../";
const std::string kOpenApi = kRoot + "router/admin/openapi.json", kTypes = kRoot + "router/dashboard/src/answers.ts";

std::vector<schema::Component> all_components() {
  return schema::components(view::kStatusList, view::kApplied, view::kServiceList, view::kTimeline, view::kHistory, store::kVerdict,
                            kStanding, kPermissions, kOutcomesSummary, kOutcomeReceipt);
}

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The file at `path` should be `text`, or becomes it.
void expect_contents(const std::string& path, const std::string& text) {
  if (std::getenv("SERIN_REWRITE") != nullptr) std::ofstream(path, std::ios::binary) << text;
  EXPECT_TRUE(contents(path) == text) << path << " is not what the descriptions say. Write it anew:\n"
                                      << "  SERIN_REWRITE=1 build/tests/router_test --gtest_filter='Descriptions.*'";
}

TEST(Descriptions, OpenApiHasTheSchemas) {
  const std::string document = contents(kOpenApi);
  constexpr std::string_view kBegin = "    \"schemas\": {\n", kByHand = "      \"Error\": {";
  const size_t begin = document.find(kBegin), by_hand = document.find(kByHand);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(by_hand, std::string::npos);
  expect_contents(kOpenApi, document.substr(0, begin + kBegin.size()) + schema::json_schema(all_components(), "      ") + ",\n" +
                                document.substr(by_hand));
}

TEST(Descriptions, TheDashboardHasTheTypes) {
  expect_contents(kTypes,
                  "// answers.ts: the answers of the admin API. Made of their descriptions in C++ (README.md); changes here are lost.\n\n" +
                      schema::typescript(all_components()));
}

TEST(Descriptions, OpenApiDefinesEverySchemaThatItRefersTo) {
  const std::string_view document = openapi_document();
  constexpr std::string_view kReference = "#/components/schemas/";
  size_t references = 0;
  for (size_t at = document.find(kReference); at != std::string_view::npos; at = document.find(kReference, at), ++references) {
    at += kReference.size();
    const std::string_view name = document.substr(at, document.find('"', at) - at);
    EXPECT_NE(document.find(fmt::format("\n      \"{}\": {{", name)), std::string_view::npos) << name;
  }
  EXPECT_GT(references, 50U);
}

}  // namespace
}  // namespace serin::router
