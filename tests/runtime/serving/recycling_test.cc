// recycling_test.cc: what is used again for the next request holds nothing of the last one, whoever hung up on it and however large it was.

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/runtime/serving/inference_server.h"

namespace serin::serving {
namespace {

std::vector<float> pixels_of(unsigned client, size_t rows) {
  std::mt19937 random(client);
  std::vector<float> pixels(rows * 64);
  for (float& pixel : pixels) pixel = static_cast<float>(random() % 17) / 16;
  return pixels;
}

/// Without what each answer has of its own, the batch that it rode in.
std::string without_batch(std::string answer) {
  if (const size_t at = answer.find("x-serin-batch"); at != std::string::npos) answer.erase(at, answer.find("\r\n", at) - at);
  return answer;
}

std::string ask(net::test::RawSocket& client, const std::string& request) {
  client.send(request);
  return without_batch(client.receive_answer());
}

std::string ask(net::test::H2Peer& peer, uint32_t& stream, const std::string& message) {
  const auto answer = peer.ask(std::exchange(stream, stream + 2), test::grpc_fields(), message);
  const auto status = answer.trailers.find("grpc-status");
  EXPECT_TRUE(status != answer.trailers.end() && status->second == "0") << testing::PrintToString(answer.head);
  return answer.body;
}

/// Requests of one client, small and large, by all protocols; each has one right answer.
class Client {
 public:
  Client(const test::InferenceServer& server, unsigned number)
      : rest_(net::test::RawSocket::connect(server.http())), grpc_(test::connect_grpc(server)) {
    const std::string id = "client " + std::to_string(number);
    for (const size_t rows : {size_t{1}, size_t{16}, size_t{1}}) {
      const auto pixels = pixels_of(number, rows);
      rest_requests_.push_back(test::json_request(pixels, id));
      rest_requests_.push_back(test::bytes_request(pixels));
      grpc_requests_.push_back(test::grpc_request(pixels, id));
    }
  }
  std::vector<std::string> ask_all() {
    std::vector<std::string> answers;
    for (const std::string& request : rest_requests_) answers.push_back(ask(rest_, request));
    for (const std::string& request : grpc_requests_) answers.push_back(ask(grpc_, stream_, request));
    return answers;
  }

 private:
  net::test::RawSocket rest_;
  net::test::H2Peer grpc_;
  uint32_t stream_ = 1;
  std::vector<std::string> rest_requests_, grpc_requests_;
};

/// Asks and hangs up, in the middle of the request or before the answer.
void hang_up(const test::InferenceServer& server, unsigned number) {
  const std::string request = test::json_request(pixels_of(number, 4), "gone");
  auto client = net::test::RawSocket::connect(server.http());
  client.send(std::string_view(request).substr(0, number % 2 == 0 ? request.size() : request.size() / 2));
  client.close();
  auto peer = test::connect_grpc(server);
  const std::string message = test::grpc_request(pixels_of(number, 4), "gone");
  peer.send_headers(1, test::grpc_fields(), false);
  peer.send_data(1, message, true);
  peer.send(net::test::frame(net::test::kReset, 0, 1, net::test::number(NGHTTP2_CANCEL)));
  peer.send_headers(3, test::grpc_fields(), false);
  peer.send_data(3, std::string_view(message).substr(0, message.size() / 2), false);
  peer.socket().reset();
}

TEST(Recycling, EverybodyGetsTheirOwnAnswers) {
  constexpr unsigned kClients = 4;
  constexpr int kRounds = 20;
  const test::InferenceServer server;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::vector<std::string>> alone;  // batches of one: what else rides along may change the last bit
  for (unsigned i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>(server, i));
    alone.push_back(clients.back()->ask_all());
    for (size_t k = 0; k < alone.back().size(); ++k)
      if (k < 6) {
        EXPECT_TRUE(alone.back()[k].starts_with("HTTP/1.1 200 ")) << alone.back()[k];
      }
  }
  for (unsigned i = 0; i < kClients; ++i) EXPECT_EQ(clients[i]->ask_all(), alone[i]) << "one after the other";

  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kClients; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        const auto together = clients[i]->ask_all();
        for (size_t k = 0; k < together.size(); ++k) {
          ASSERT_EQ(together[k].size() > 0, alone[i][k].size() > 0);
          if (k % 2 == 0 && k < 6) {
            ASSERT_NE(together[k].find("client " + std::to_string(i)), std::string::npos) << together[k];
          }
        }
        hang_up(server, i + static_cast<unsigned>(round));
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (unsigned i = 0; i < kClients; ++i) EXPECT_EQ(clients[i]->ask_all(), alone[i]) << "after those who hung up";
}

TEST(Recycling, LargeMemoryIsNotKept) {
  protocol::InferRequest request;
  request.memory = AlignedBuffer(2 * kMostRecycledBytes);
  request.texts = {{std::string(2 * kMostRecycledBytes, 'x')}};
  request.clear();
  EXPECT_EQ(request.memory.size(), 0u);
  EXPECT_TRUE(request.texts.empty());

  net::Request asked;
  asked.body.assign(2 * kMostRecycledBytes, 'x');
  asked.clear();
  EXPECT_LT(asked.body.capacity(), kMostRecycledBytes);
}

TEST(Recycling, AJobIsAsNew) {
  Job job;
  job.inputs.resize(2);
  job.rows = 7;
  job.group = {1, 2};
  job.sizes = {{"n", 3}};
  job.priority = 1;
  job.sequence.name = "a";
  job.shadow = job.abandoned = true;
  job.done = [](const Answer&) {};
  job.clear();
  EXPECT_TRUE(job.inputs.empty() && job.group.empty() && job.sizes.empty());
  EXPECT_EQ(job.rows, 1);
  EXPECT_EQ(job.priority, 0u);
  EXPECT_FALSE(job.sequence.any() || job.shadow || job.given_up() || job.done);
}

}  // namespace
}  // namespace serin::serving
