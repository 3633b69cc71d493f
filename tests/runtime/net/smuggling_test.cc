// smuggling_test.cc: the families of smuggling_rows.h against the server: refused, closed, and the hidden request never served.

#include <gmock/gmock.h>

#include "tests/runtime/net/smuggling_rows.h"
#include "tests/runtime/net/test_server.h"

namespace serin::net {
namespace {

using test::RawSocket;
using test::status_of;
using test::TestServer;

TEST(Smuggling, EveryRowIsRefusedAndClosed) {
  TestServer server;
  for (const auto& row : test::smuggling_rows()) {
    const std::string answer = server.exchange(row.message);
    const int status = status_of(answer);
    EXPECT_TRUE(status == 400 || status == 501 || status == 505) << row.name << ": " << answer;
    EXPECT_THAT(answer, testing::HasSubstr("connection: close\r\n")) << row.name;
    EXPECT_THAT(answer, testing::Not(testing::HasSubstr("}HTTP/"))) << row.name << ": a second answer";
  }
  EXPECT_EQ(server.seen(), 0u);
}

TEST(Smuggling, EveryRowIsRefusedBehindAValidRequest) {
  for (const auto& row : test::smuggling_rows()) {
    TestServer server;
    server.exchange("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n" + row.message);
    EXPECT_EQ(server.seen(), 1u) << row.name;
  }
}

TEST(Smuggling, HS45_InvalidBehindAHeldRequestDoesNotCloseTooEarly) {
  TestServer server;
  RawSocket client = server.connect();
  client.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET /echo HTTP/1.1\r\nHost : a\r\n\r\n");
  ASSERT_TRUE(server.await_held(1));
  server.release();
  EXPECT_EQ(test::body_of(client.receive_answer()), "released");
  EXPECT_EQ(status_of(client.receive_answer()), 400);
  EXPECT_TRUE(client.at_end());
}

TEST(Smuggling, HS48_PipelinedBytesAreNotTakenAsBody) {
  TestServer server;
  RawSocket client = server.connect();
  client.send(
      "POST /echo HTTP/1.1\r\nHost: a\r\n\r\n"
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n!\r\n0\r\n\r\n"
      "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(test::body_of(client.receive_answer()), "POST /echo|");
  EXPECT_EQ(test::body_of(client.receive_answer()), "POST /echo|hi");
  EXPECT_EQ(test::body_of(client.receive_answer()), "POST /echo|!");
  EXPECT_EQ(test::body_of(client.receive_answer()), "GET /echo|");
}

}  // namespace
}  // namespace serin::net
