// stream_infer_test.cc: requests of one stream of ModelStreamInfer that fare differently.

#include <gmock/gmock.h>

#include "tests/runtime/serving/inference_server.h"

namespace serin::serving {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(StreamInfer, OneThatFindsNoMemoryIsToldSoByItsIdAndTheOthersAreAnswered) {
  test::InferenceServer server(std::make_shared<MemoryBudget>(/*each=*/20'000, /*all=*/0));
  auto peer = test::connect_grpc(server);
  net::test::Fields fields = test::grpc_fields();
  for (auto& [name, value] : fields)
    if (name == ":path") value = "/inference.GRPCInferenceService/ModelStreamInfer";
  peer.send_headers(1, fields, false);
  const std::vector<float> row(64, 0.5F), rows(size_t{64} * 200, 0.5F);
  std::string requests = test::grpc_request(row, "before") + test::grpc_request(rows, "large") + test::grpc_request(row, "behind");
  constexpr size_t kFrame = 16'000;
  for (size_t at = 0; at < requests.size(); at += kFrame)
    peer.send_data(1, std::string_view(requests).substr(at, kFrame), at + kFrame >= requests.size());
  const auto answer = peer.receive_answer(1);
  EXPECT_EQ(answer.trailers.at("grpc-status"), "0");
  std::map<std::string, std::string> answers;  // by the id that is in it
  for (std::string_view left = answer.body; left.size() > net::GrpcPrefix::kBytes;) {
    const std::string_view message = left.substr(net::GrpcPrefix::kBytes, net::read_grpc_prefix(left)->length);
    for (const std::string id : {"before", "large", "behind"})
      if (message.find(id) != message.npos) answers[id] = message;
    left.remove_prefix(net::GrpcPrefix::kBytes + message.size());
  }
  EXPECT_THAT(answers["large"], HasSubstr("too many large messages are under way"));
  for (const std::string id : {"before", "behind"}) {
    EXPECT_THAT(answers[id], HasSubstr("scores"));
    EXPECT_THAT(answers[id], Not(HasSubstr("too many")));
  }
}

}  // namespace
}  // namespace serin::serving
