// server_limits_test.cc: what a client may not have: long heads, large bodies, all the time in the world, every connection.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <filesystem>
#include <mutex>
#include <thread>

#include "runtime/net/content_coding.h"
#include "tests/runtime/base/eventually.h"
#include "tests/runtime/net/test_server.h"

namespace serin::net {
namespace {

using namespace std::chrono_literals;
using serin::test::eventually;
using test::body_of;
using test::RawSocket;
using test::status_of;
using test::TestServer;
using testing::HasSubstr;

constexpr std::string_view kGet = "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
constexpr std::string_view kChunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST(Limits, H10_RequestLineAndHeaders) {
  TestServer server;
  EXPECT_EQ(status_of(server.exchange("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n")), 414);
  EXPECT_EQ(status_of(server.exchange("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(70'000, 'a') + "\r\n\r\n")), 431);
  std::string many;
  for (int i = 0; i < 101; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
  EXPECT_EQ(status_of(server.exchange("GET / HTTP/1.1\r\nHost: a\r\n" + many + "\r\n")), 431);
  EXPECT_EQ(status_of(server.exchange("GET /" + std::string(8000, 'a') + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")), 200);
  EXPECT_EQ(server.seen(), 1u);
}

TEST(Limits, H11_BodyTooLargeByItsLength) {
  TestServer server({.body_bytes = 1000});
  RawSocket client = server.connect();
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n");  // and not a byte of it
  const std::string answer = client.receive_all();
  EXPECT_EQ(status_of(answer), 413);
  EXPECT_THAT(answer, HasSubstr("connection: close\r\n"));
  EXPECT_THAT(answer, HasSubstr("larger than 1000 bytes: so much do tests take"));
  RawSocket patient = server.connect();
  patient.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(status_of(patient.receive_all()), 413) << "who asks first is not told to go on";
}

TEST(Limits, H11_BodyTooLargeByItsChunks) {
  TestServer server({.body_bytes = 1000});
  std::string chunks;
  for (int i = 0; i < 11; ++i) chunks += "64\r\n" + std::string(100, 'x') + "\r\n";
  EXPECT_EQ(status_of(server.exchange(std::string(kChunked) + chunks)), 413);
  EXPECT_EQ(status_of(server.exchange(std::string(kChunked) + "7fffffffffffffff\r\n")), 413);
  EXPECT_EQ(server.seen(), 0u);
}

TEST(Limits, H11_TheAnswerArrivesThoughTheClientSendsOn) {
  TestServer server({.body_bytes = 1000});
  RawSocket client = server.connect();
  std::thread sender(
      [&] { client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n" + std::string(4'000'000, 'x')); });
  EXPECT_EQ(status_of(client.receive_answer()), 413);
  sender.join();
}

TEST(Limits, H11_LargeBodiesShareMemory) {
  constexpr size_t kEach = 100'000, kAll = 1'000'000;
  const auto budget = std::make_shared<MemoryBudget>(kEach, kAll);
  TestServer server({.body_bytes = 8'000'000}, 1, false, nullptr, budget);
  const auto post = [](const char* path, size_t bytes) {
    return fmt::format("POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", path, bytes) + std::string(bytes, 'x');
  };
  RawSocket large = server.connect();
  large.send(post("/hold", 1'000'000));
  ASSERT_TRUE(server.await_held(1));
  EXPECT_LE(budget->left(), kAll - 900'000) << "it has its memory until it is answered";
  RawSocket second = server.connect();
  std::thread sender([&] { second.send(post("/echo", 4'000'000)); });
  const std::string refused = second.receive_answer();
  EXPECT_EQ(status_of(refused), 429);
  EXPECT_THAT(refused, HasSubstr("retry-after: 1\r\n"));
  sender.join();
  RawSocket ordinary = server.connect();
  ordinary.send(post("/echo", kEach));
  EXPECT_EQ(status_of(ordinary.receive_answer()), 200) << "who is not large does not ask";
  server.release();
  EXPECT_EQ(status_of(large.receive_answer()), 200);
  EXPECT_TRUE(eventually([&] { return budget->left() == kAll; }));
  RawSocket again = server.connect();
  again.send(post("/echo", 1'000'000));
  EXPECT_EQ(status_of(again.receive_answer()), 200);
}

TEST(Limits, H11_LargeBodiesOfUnknownLengthShareMemory) {
  const auto budget = std::make_shared<MemoryBudget>(100'000, 1'000'000);
  TestServer server({.body_bytes = 8'000'000}, 1, false, nullptr, budget);
  RawSocket client = server.connect();
  std::thread sender([&] { client.send(std::string(kChunked) + "3d0900\r\n" + std::string(4'000'000, 'x') + "\r\n0\r\n\r\n"); });
  EXPECT_EQ(status_of(client.receive_answer()), 429);
  sender.join();
  EXPECT_TRUE(eventually([&] { return budget->left() == 1'000'000; }));
  EXPECT_EQ(server.seen(), 0u);
}

TEST(Limits, H11_ABodyOfUnknownLengthIsCountedAsItIs) {
  const auto budget = std::make_shared<MemoryBudget>(100'000, 4'000'000);
  TestServer server({.body_bytes = 8'000'000}, 1, false, nullptr, budget);
  RawSocket client = server.connect();  // 3,000,000 bytes: twice as many would be refused
  std::thread sender([&] { client.send(std::string(kChunked) + "2dc6c0\r\n" + std::string(3'000'000, 'x') + "\r\n0\r\n\r\n"); });
  EXPECT_EQ(status_of(client.receive_answer()), 200);
  sender.join();
  TestServer tight({.body_bytes = 3'000'000}, 1, false, nullptr, std::make_shared<MemoryBudget>(100'000, 2'900'000));
  RawSocket largest = tight.connect();
  std::thread other([&] { largest.send(std::string(kChunked) + "2dc6c0\r\n" + std::string(3'000'000, 'x') + "\r\n0\r\n\r\n"); });
  EXPECT_EQ(status_of(largest.receive_answer()), 200) << "just what there is";
  other.join();
}

TEST(Limits, H14_PackedBodiesShareMemoryAsTheyGrow) {
  const auto budget = std::make_shared<MemoryBudget>(100'000, 3'000'000);
  TestServer server({.body_bytes = 8'000'000}, 1, false, nullptr, budget);
  const auto post = [](const char* path, size_t bytes) {
    const std::string packed = *pack(Coding::kGzip, std::string(bytes, 'x'));
    return fmt::format("POST {} HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n{}", path, packed.size(),
                       packed);
  };
  RawSocket client = server.connect();
  client.send(post("/echo", 2'000'000));
  EXPECT_EQ(body_of(client.receive_answer()).size(), std::string_view("POST /echo|").size() + 2'000'000);
  EXPECT_TRUE(eventually([&] { return budget->left() == 3'000'000; }));
  client.send(post("/echo", 3'100'000));
  const std::string never = client.receive_answer();
  EXPECT_EQ(status_of(never), 413) << "it could not be taken if it were alone";
  EXPECT_THAT(never, HasSubstr("so much do tests take"));
  client.send(post("/hold", 2'000'000));
  ASSERT_TRUE(server.await_held(1));
  EXPECT_LE(budget->left(), 3'000'000U - 1'900'000);
  RawSocket second = server.connect();
  second.send(post("/echo", 2'000'000));
  const std::string refused = second.receive_answer();
  EXPECT_EQ(status_of(refused), 429);
  EXPECT_THAT(refused, HasSubstr("retry-after: 1\r\n"));
  second.send(post("/echo", 50'000));
  EXPECT_EQ(status_of(second.receive_answer()), 200) << "the connection goes on";
}

/// Holds what it is asked, having read the body or not.
class Holder {
 public:
  explicit Holder(ServerOptions options)
      : server_(*Server::start(loops_, std::move(options), [this](Request&&, Responder responder) {
          const std::lock_guard lock(mutex_);
          held_.push_back(std::move(responder));
        })) {}
  RawSocket connect() { return RawSocket::connect(server_->port()); }
  bool has(size_t count) {
    const std::lock_guard lock(mutex_);
    return held_.size() == count;
  }

 private:
  std::mutex mutex_;
  std::vector<Responder> held_;
  Loops loops_{1};
  std::unique_ptr<Server> server_;
};

TEST(Limits, H11_ABodyThatWasReadTakesNoMoreMemory) {
  const auto budget = std::make_shared<MemoryBudget>(100'000, 1'000'000);
  Holder server({.limits = {.body_bytes = 8'000'000}, .large_bodies = budget});
  RawSocket client = server.connect();
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n" + std::string(900'000, 'x'));
  ASSERT_TRUE(eventually([&] { return server.has(1); }));
  EXPECT_TRUE(eventually([&] { return budget->left() == 1'000'000; })) << "though it is not answered";
}

TEST(Limits, H11_ARefusalIsNoAnswerOfTheHandler) {
  const auto budget = std::make_shared<MemoryBudget>(100'000, 200'000);
  Holder server({.limits = {.body_bytes = 8'000'000},
                 .large_bodies = budget,
                 .on_refusal = [](Response& response) { response.status = response.status == 429 ? 503 : 500; },
                 .on_answer = [](Response& response) { response.status = 400; }});
  RawSocket client = server.connect();
  std::thread sender([&] { client.send(std::string(kChunked) + "f4240\r\n" + std::string(1'000'000, 'x')); });
  EXPECT_EQ(status_of(client.receive_answer()), 503);
  sender.join();
  RawSocket packed = server.connect();
  packed.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nxxxx");
  EXPECT_EQ(status_of(packed.receive_answer()), 500);
}

TEST(Limits, H12_ABodyOfTinyChunks) {
  TestServer server;
  const auto chunks = [](int count) {
    std::string message(kChunked);
    for (int i = 0; i < count; ++i) message += "1\r\nx\r\n";
    return message + "0\r\n\r\n";
  };
  RawSocket client = server.connect();
  client.send(chunks(65'536));
  EXPECT_EQ(body_of(client.receive_answer()).size(), std::string_view("POST /echo|").size() + 65'536);
  std::thread sender([&] { client.send(chunks(3'000'000)); });
  EXPECT_EQ(status_of(client.receive_answer()), 413);
  client.half_close();
  sender.join();
}

TEST(Limits, H13_ChunkExtensionsAndTrailers) {
  TestServer server;
  EXPECT_EQ(status_of(server.exchange(std::string(kChunked) + "1;" + std::string(1'000'000, 'x') + "\r\nx\r\n0\r\n\r\n")), 400);
  EXPECT_EQ(status_of(server.exchange(std::string(kChunked) + "0\r\nx: " + std::string(1'000'000, 'x') + "\r\n\r\n")), 431);
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "x: y\r\n";
  EXPECT_EQ(status_of(server.exchange(std::string(kChunked) + "0\r\n" + many + "\r\n")), 431);
  EXPECT_EQ(server.seen(), 0u);
}

TEST(Limits, H16_SlowHead) {
  TestServer server({.header_timeout = 100ms});
  RawSocket slow = server.connect();
  slow.send("GET /echo HTTP/1.1\r\nHost: a\r\nX: ");
  EXPECT_EQ(body_of(server.exchange(kGet)), "GET /echo|") << "others are served meanwhile";
  // A byte now and then gains no time: the whole head has one deadline.
  std::atomic<bool> over{false};
  std::thread dripping([&] {
    while (!over && slow.send("x")) std::this_thread::sleep_for(1ms);
  });
  EXPECT_EQ(status_of(slow.receive_answer()), 408);
  over = true;
  dripping.join();
}

TEST(Limits, H16_SlowBody) {
  TestServer server({.body_timeout = 100ms});
  RawSocket slow = server.connect();
  slow.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(status_of(slow.receive_all()), 408);
  RawSocket chunked = server.connect();
  chunked.send(std::string(kChunked) + "5\r\nab");
  EXPECT_EQ(status_of(chunked.receive_all()), 408);
  EXPECT_EQ(server.seen(), 0u);
}

TEST(Limits, H16_SlowReader) {
  TestServer server({.write_timeout = 100ms});
  RawSocket slow = RawSocket::connect(server.port(), /*receive_buffer=*/4096);
  slow.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
  while (server.registry.render().find("write_timeout") == std::string::npos)
    std::this_thread::yield();  // the test's own timeout bounds this
  EXPECT_LT(slow.receive_all().size(), size_t{8} << 20) << "the answer was cut off";
}

TEST(Limits, IdleConnectionsAreClosedWithoutAWord) {
  TestServer server({.header_timeout = 100ms, .idle_timeout = 100ms});
  RawSocket silent = server.connect();
  EXPECT_TRUE(silent.at_end());
  RawSocket used = server.connect();
  used.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(status_of(used.receive_answer()), 200);
  EXPECT_TRUE(used.at_end());
}

TEST(Limits, H25_ATlsHandshakeIsToldAtOnceThatThisIsHttp) {
  TestServer server({.header_timeout = 1h});
  RawSocket client = server.connect();
  client.send(std::string_view("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));
  const std::string answer = client.receive_all();
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_THAT(answer, HasSubstr("TLS"));
  EXPECT_EQ(body_of(server.exchange(kGet)), "GET /echo|");
}

TEST(Limits, H17_ManyIdleConnections) {
  TestServer server;
  std::vector<RawSocket> idle;
  idle.reserve(400);
  for (int i = 0; i < 400; ++i) idle.push_back(server.connect());
  for (RawSocket& client : idle) ASSERT_TRUE(client.connected());
  EXPECT_EQ(body_of(server.exchange(kGet)), "GET /echo|");
}

TEST(Limits, H17_ConnectionCap) {
  TestServer server({.connections = 2});
  RawSocket first = server.connect(), second = server.connect();
  for (RawSocket* client : {&first, &second}) {
    client->send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(status_of(client->receive_answer()), 200);
  }
  RawSocket third = server.connect();
  EXPECT_EQ(status_of(third.receive_all()), 503);
  first.close();
  while (status_of(server.exchange(kGet)) != 200) std::this_thread::yield();  // until the server has seen that `first` is gone
}

TEST(Limits, H17_OutOfFileDescriptors) {
  TestServer server;
  RawSocket first = server.connect();
  first.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(status_of(first.receive_answer()), 200);

  const auto open_descriptors = [] {  // without the one that counts
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()) - 1;
  };
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(open_descriptors()) + 1;  // for the client's end of one more connection, not for the server's
  setrlimit(RLIMIT_NOFILE, &tight);
  RawSocket waits = server.connect();
  ASSERT_TRUE(waits.connected());
  waits.send(kGet);
  first.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(status_of(first.receive_answer()), 200) << "who is connected is served";
  first.close();  // its descriptor, and then the server's end of it, are free again
  EXPECT_EQ(body_of(waits.receive_all()), "GET /echo|");
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace serin::net
