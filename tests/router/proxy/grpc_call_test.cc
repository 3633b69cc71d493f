// grpc_call_test.cc: whose a call of gRPC is, and how its messages are named anew.

#include "router/proxy/grpc_call.h"

#include <gmock/gmock.h>

namespace serin::router {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

std::string text(int field, const std::string& value) {
  return std::string(1, static_cast<char>(field << 3 | 2)) + static_cast<char>(value.size()) + value;
}

std::string message(const std::string& bytes, bool compressed = false) {
  std::string out;
  net::append_grpc_prefix({.compressed = compressed, .length = static_cast<uint32_t>(bytes.size())}, out);
  return out + bytes;
}

std::string renamed(const std::string& body, const std::string& fields, size_t step) {
  MessageNamer namer;
  namer.begin(fields);
  net::Buffer out;
  for (size_t at = 0; at < body.size(); at += step) namer.feed(std::string_view(body).substr(at, step), out);
  return std::string(out.data());
}

TEST(GrpcCall, KnowsTheMethodsThatNameAModel) {
  EXPECT_TRUE(find_model_method("/inference.GRPCInferenceService/ModelInfer")->infer);
  EXPECT_TRUE(find_model_method("/inference.GRPCInferenceService/ModelStreamInfer")->streams);
  EXPECT_FALSE(find_model_method("/inference.GRPCInferenceService/ModelReady")->infer);
  EXPECT_EQ(find_model_method("/inference.GRPCInferenceService/RepositoryModelUnload"), nullptr);
  EXPECT_EQ(find_model_method("/other.Service/ModelInfer"), nullptr);
  for (const char* method : {"Predict", "Classify", "Regress"}) {
    const ModelMethod* found = find_model_method(std::string("/tensorflow.serving.PredictionService/") + method);
    EXPECT_TRUE(found->infer && !found->streams && found->naming == Naming::kSpec) << method;
  }
  EXPECT_FALSE(find_model_method("/tensorflow.serving.ModelService/GetModelStatus")->infer);
  EXPECT_EQ(find_model_method("/tensorflow.serving.PredictionService/MultiInference"), nullptr) << "its models stand in a list";
}

TEST(GrpcCall, ReadsTheModelAsSoonAsItIsThere) {
  const std::string whole = message("\x18\x05"s + text(2, "7") + text(1, "digits") + text(7, "rest"));
  const size_t there = whole.find("digits") + 6;
  for (size_t size = 0; size < there; ++size) {
    const auto named = model_named_in(Naming::kFields, whole.substr(0, size), /*complete=*/false);
    ASSERT_TRUE(named) << size;
    EXPECT_FALSE(*named) << size;
  }
  for (size_t size = there; size <= whole.size(); ++size)
    EXPECT_EQ(**model_named_in(Naming::kFields, whole.substr(0, size), false), "digits") << size;
}

TEST(GrpcCall, ReadsTheModelOfAModelSpec) {
  const std::string spec = text(3, "serving_default") + text(1, "digits");
  const std::string whole = message(text(2, "inputs first") + text(1, text(3, "no name")) + text(1, spec) + text(2, "rest"));
  const size_t there = whole.find("digits") + 6;
  for (size_t size = 0; size < there; ++size) {
    const auto named = model_named_in(Naming::kSpec, whole.substr(0, size), /*complete=*/false);
    ASSERT_TRUE(named) << size;
    EXPECT_FALSE(*named) << size;
  }
  for (size_t size = there; size <= whole.size(); ++size)
    EXPECT_EQ(**model_named_in(Naming::kSpec, whole.substr(0, size), false), "digits") << size;
  const auto why = [](const std::string& body) { return model_named_in(Naming::kSpec, message(body), /*complete=*/true).error().message; };
  EXPECT_THAT(why(text(1, text(3, "only a signature"))), HasSubstr("names no model"));
  EXPECT_THAT(why(text(1, "digits")), HasSubstr("not what protobuf writes")) << "of the other protocol";
  EXPECT_THAT(why(text(1, "\x0A\x05"s + "net")), HasSubstr("not what protobuf writes")) << "a name that ends behind its ModelSpec";
  EXPECT_THAT(why("\x0A\x7F\x0A\x03"s + "ne"), HasSubstr("not what protobuf writes"));
  EXPECT_THAT(why(text(1, "\x0A\xFF\x7F"s + "net")), HasSubstr("longer than 128"));
}

TEST(GrpcCall, H24_RefusesWhatNamesNone) {
  const auto why = [](const std::string& body, bool complete = true) {
    return model_named_in(Naming::kFields, body, complete).error().message;
  };
  EXPECT_THAT(why(""), HasSubstr("no message"));
  EXPECT_THAT(why("\0\0\0"s), HasSubstr("no message"));
  EXPECT_THAT(why(message("")), HasSubstr("names no model"));
  EXPECT_THAT(why(message(text(2, "7"))), HasSubstr("names no model"));
  EXPECT_THAT(why(message("\x0A\x7Fx")), HasSubstr("not what protobuf writes"));
  EXPECT_THAT(why(message(std::string(11, '\xFF'))), HasSubstr("not what protobuf writes"));
  EXPECT_THAT(why(message("\x0B")), HasSubstr("not what protobuf writes"));  // a group
  EXPECT_THAT(why(message("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01")), HasSubstr("longer than 128"));
  EXPECT_THAT(why("\x02\0\0\0\0"s), HasSubstr("does not begin with a message"));
  EXPECT_THAT(why(message(text(1, "digits"), /*compressed=*/true)), HasSubstr("compressed"));
  std::string far = message(std::string(1 << 20, 'x'));  // a megabyte of who knows what: not waited for
  far[5] = '\x3A';
  far.replace(6, 3, "\xF0\xFF\x3F");
  EXPECT_THAT(why(far.substr(0, 70'000), /*complete=*/false), HasSubstr("64 KiB"));
}

TEST(GrpcCall, NamesModelAndVersionByTheUrl) {
  const auto fields = [](std::string_view path) { return naming_fields(Naming::kFields, "digits", path); };
  EXPECT_EQ(fields(""), text(1, "digits"));
  EXPECT_EQ(fields("/elsewhere"), text(1, "digits"));
  EXPECT_EQ(fields("/v1/models/net"), text(1, "digits"));
  EXPECT_EQ(fields("/v2/models/net/versions/3"), text(1, "net") + text(2, "3"));
  EXPECT_EQ(fields("/v2/models/net"), text(1, "net") + text(2, ""));
  const auto spec = [](std::string_view path) { return naming_fields(Naming::kSpec, "digits", path); };
  EXPECT_EQ(spec(""), text(1, text(1, "digits")));
  EXPECT_EQ(spec("/elsewhere"), text(1, text(1, "digits")));
  for (const std::string models : {"/v1/models/", "/v2/models/"}) {
    EXPECT_EQ(spec(models + "net"), text(1, text(1, "net")));
    EXPECT_EQ(spec(models + "net/versions/3"), text(1, text(1, "net") + text(2, "\x08\x03")));
    EXPECT_EQ(spec(models + "net/versions/0"), text(1, text(1, "net") + text(2, "\x08\0"s)));
    EXPECT_EQ(spec(models + "net/labels/stable"), text(1, text(1, "net") + text(4, "stable")));
  }
}

TEST(GrpcCall, NamesEveryMessageHoweverItIsCut) {
  const std::string name = text(1, "net"), first = text(1, "digits") + text(7, "input"), second = text(1, "digits");
  const std::string body = message(first) + message("") + message(second, /*compressed=*/true);
  const std::string expected = message(first + name) + message(name) + message(second, true);
  for (size_t step = 1; step <= body.size(); ++step) EXPECT_EQ(renamed(body, name, step), expected) << step;
}

// A length that has no room for the name: nothing behind it may be taken for another message.
TEST(GrpcCall, H24_NeverWrapsALength) {
  const std::string out = renamed("\0\xFF\xFF\xFF\xFE"s + message("x"), text(1, "net"), 3);
  EXPECT_EQ(out, "\0\xFF\xFF\xFF\xFE"s + message("x"));
}

}  // namespace
}  // namespace serin::router
