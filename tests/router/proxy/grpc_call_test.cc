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
}

TEST(GrpcCall, ReadsTheModelAsSoonAsItIsThere) {
  const std::string whole = message("\x18\x05"s + text(2, "7") + text(1, "digits") + text(7, "rest"));
  const size_t there = whole.find("digits") + 6;
  for (size_t size = 0; size < there; ++size) {
    const auto named = model_named_in(whole.substr(0, size), /*complete=*/false);
    ASSERT_TRUE(named) << size;
    EXPECT_FALSE(*named) << size;
  }
  for (size_t size = there; size <= whole.size(); ++size) EXPECT_EQ(**model_named_in(whole.substr(0, size), false), "digits") << size;
}

TEST(GrpcCall, H24_RefusesWhatNamesNone) {
  const auto why = [](const std::string& body, bool complete = true) { return model_named_in(body, complete).error().message; };
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
  EXPECT_EQ(naming_fields("digits", ""), text(1, "digits"));
  EXPECT_EQ(naming_fields("digits", "/elsewhere"), text(1, "digits"));
  EXPECT_EQ(naming_fields("digits", "/v2/models/net/versions/3"), text(1, "net") + text(2, "3"));
  EXPECT_EQ(naming_fields("digits", "/v2/models/net"), text(1, "net") + text(2, ""));
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
