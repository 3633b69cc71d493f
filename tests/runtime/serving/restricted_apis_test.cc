// restricted_apis_test.cc: which call belongs to which group, and what a flag may say.

#include "runtime/serving/apis/restricted_apis.h"

#include <gmock/gmock.h>

namespace serin::serving {
namespace {

using enum ApiGroup;

TEST(RestrictedApis, EveryCallOverHttpHasAGroup) {
  const std::tuple<const char*, const char*, ApiGroup> calls[] = {{"GET", "/v2/health/live", kHealth},
                                                                  {"GET", "/", kHealth},
                                                                  {"GET", "/v2/models/m/ready", kHealth},
                                                                  {"GET", "/v2/models/m/versions/1/ready", kHealth},
                                                                  {"GET", "/v2", kMetadata},
                                                                  {"GET", "/v2/models/m", kMetadata},
                                                                  {"GET", "/v2/models/ready", kMetadata},  // a model of that name
                                                                  {"GET", "/v1/models/m", kMetadata},
                                                                  {"GET", "/v2/models/m/config", kModelConfig},
                                                                  {"GET", "/v2/models/stats", kStatistics},
                                                                  {"GET", "/v2/models/m/stats", kStatistics},
                                                                  {"POST", "/v2/models/m/infer", kInference},
                                                                  {"POST", "/v2/models/m/generate_stream", kInference},
                                                                  {"POST", "/v1/models/m:predict", kInference},
                                                                  {"POST", "/GeneralModelService/inference", kInference},
                                                                  {"POST", "/v2/models/m/trace/setting", kTrace},
                                                                  {"GET", "/v2/trace/setting", kTrace},
                                                                  {"POST", "/v2/repository/index", kModelRepository},
                                                                  {"POST", "/v2/repository/models/m/load", kModelRepository},
                                                                  {"GET", "/v2/systemsharedmemory/status", kSharedMemory},
                                                                  {"POST", "/v2/cudasharedmemory/region/r/register", kSharedMemory},
                                                                  {"POST", "/v2/logging", kLogging}};
  for (const auto& [method, path, group] : calls) EXPECT_EQ(api_group_of_http(method, path), group) << method << " " << path;
}

TEST(RestrictedApis, EveryCallOverGrpcHasAGroup) {
  const std::pair<const char*, ApiGroup> calls[] = {{"ServerReady", kHealth},
                                                    {"ModelReady", kHealth},
                                                    {"ModelMetadata", kMetadata},
                                                    {"ModelInfer", kInference},
                                                    {"ModelStreamInfer", kInference},
                                                    {"ModelConfig", kModelConfig},
                                                    {"ModelStatistics", kStatistics},
                                                    {"RepositoryModelUnload", kModelRepository},
                                                    {"CudaSharedMemoryRegister", kSharedMemory},
                                                    {"TraceSetting", kTrace},
                                                    {"LogSettings", kLogging}};
  for (const auto& [method, group] : calls)
    EXPECT_EQ(api_group_of_grpc(std::string("/inference.GRPCInferenceService/") + method), group) << method;
  EXPECT_EQ(api_group_of_grpc("/grpc.health.v1.Health/Check"), kHealth);
  EXPECT_EQ(api_group_of_grpc("/tensorflow.serving.PredictionService/Predict"), kInference);
  EXPECT_EQ(api_group_of_grpc("/tensorflow.serving.PredictionService/GetModelMetadata"), kMetadata);
  EXPECT_EQ(api_group_of_grpc("/tensorflow.serving.ModelService/HandleReloadConfigRequest"), kModelRepository);
  EXPECT_EQ(api_group_of_grpc("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"), std::nullopt);
}

TEST(RestrictedApis, TheValueMustBeTheSame) {
  RestrictedApis restricted;
  EXPECT_TRUE(restricted.empty());
  ASSERT_TRUE(restricted.add("inference,logging:key=a=b", "x-"));
  EXPECT_FALSE(restricted.empty());
  const auto with = [](const char* name, const char* value) {
    net::Headers headers;
    headers.add(name, value);
    return headers;
  };
  for (const ApiGroup group : {kInference, kLogging}) {
    EXPECT_EQ(restricted.missing(group, {}), "x-key");
    EXPECT_EQ(restricted.missing(group, with("key", "a=b")), "x-key");
    EXPECT_EQ(restricted.missing(group, with("x-key", "a")), "x-key");
    EXPECT_EQ(restricted.missing(group, with("X-Key", "a=b")), std::nullopt);
  }
  EXPECT_EQ(restricted.missing(kTrace, {}), std::nullopt);
}

TEST(RestrictedApis, MistakesAreNamed) {
  for (const auto& [text, words] :
       {std::pair("inference", "is no groups:header=value"), std::pair("inference:key", "is no groups:header=value"),
        std::pair("inference:=value", "is no groups:header=value"), std::pair("inference:key=", "is no groups:header=value"),
        std::pair("inference,everything:key=value", "'everything' is none of: health, "), std::pair(":key=value", "'' is none of: "),
        std::pair("trace,trace:key=value", "trace is named twice")}) {
    RestrictedApis restricted;
    const Status added = restricted.add(text, "");
    ASSERT_FALSE(added) << text;
    EXPECT_THAT(added.error().message, testing::HasSubstr(words));
    EXPECT_THAT(added.error().message, testing::Not(testing::HasSubstr("value'")));
  }
}

}  // namespace
}  // namespace serin::serving
