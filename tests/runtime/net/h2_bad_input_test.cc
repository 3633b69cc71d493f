// h2_bad_input_test.cc: H24 of the catalogue of bad input: what a client of HTTP/2 may try. Every one ends with an answer, a reset or a GOAWAY, and
// the server serves the next client.

#include <gmock/gmock.h>

#include <fstream>
#include <future>

#include "tests/runtime/net/h2_peer.h"
#include "tests/runtime/net/test_server.h"

namespace serin::net {
namespace {

using namespace std::chrono_literals;
using test::block;
using test::Fields;
using test::frame;
using test::H2Peer;
using test::number;
using test::TestServer;
using testing::HasSubstr;

class H2BadInput : public testing::Test {
 protected:
  void TearDown() override {
    H2Peer peer = H2Peer::connect(server_.port());
    EXPECT_EQ(peer.ask(1, test::request("/echo")).body, "GET /echo|");
  }
  /// Nothing of it reaches a handler, and the connection goes on.
  void expect_refused(const Fields& fields, const std::string& status = "") {
    H2Peer peer = H2Peer::connect(server_.port());
    const size_t seen = server_.seen();
    const auto answer = peer.ask(1, fields);
    if (answer.head.empty())
      EXPECT_EQ(answer.reset, uint32_t{NGHTTP2_PROTOCOL_ERROR}) << block(fields);
    else
      EXPECT_EQ(answer.head.at(":status"), status) << block(fields);
    EXPECT_EQ(server_.seen(), seen) << block(fields);
    EXPECT_EQ(peer.ask(3, test::request("/echo")).body, "GET /echo|") << block(fields);
  }
  size_t resident() const {
    std::ifstream statm("/proc/self/statm");
    size_t all = 0, pages = 0;
    statm >> all >> pages;
    return pages * 4096;
  }

  TestServer server_{{.request_line_bytes = 2048, .header_bytes = 8192, .write_timeout = 200ms}, 1, /*http2=*/true};
};

TEST_F(H2BadInput, H24_HeadersThatWouldSplitAMessageOfHttp1) {
  for (const std::string& value : std::vector<std::string>{"a\r\nx: b", "a\nb", {"a\0b", 3}, "a\rb", "\x01", "\xFF", "\xC2\xA0"})
    expect_refused(test::request("/echo", {{"x", value}}), "400");
  for (const std::string name : {"x y", "x\r\ny", "x:y", "", "\xC3\xBC", "x\tz"})
    expect_refused(test::request("/echo", {{name, "1"}}), "400");
  expect_refused(test::request("/echo", {{"X-Upper", "1"}}), "400");
}

TEST_F(H2BadInput, H24_HeadersOfAConnection) {
  for (const char* name : {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"})
    expect_refused(test::request("/echo", {{name, "chunked"}}));
  expect_refused(test::request("/echo", {{"te", "gzip"}}));
}

TEST_F(H2BadInput, H24_PseudoHeaders) {
  const Fields good = test::request("/echo");
  for (size_t left_out = 0; left_out < good.size(); ++left_out) {
    Fields fields = good, twice = good;
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(left_out));
    twice.push_back(good[left_out]);
    expect_refused(fields);
    expect_refused(twice);
  }
  expect_refused({{":method", "GET"}, {":scheme", "http"}, {"x", "y"}, {":authority", "a"}, {":path", "/echo"}});
  expect_refused(test::request("/echo", {{":status", "200"}}));
  expect_refused(test::request("/echo", {{":unknown", "1"}}));
  expect_refused(test::request(""));
}

TEST_F(H2BadInput, H24_TargetsHostsAndMethods) {
  for (const char* path : {"echo", "http://a/echo", "/a b", "/../x", "/%00", "/a%2Fb", "/%", "/#"})
    expect_refused(test::request(path), "400");
  expect_refused(test::request("/" + std::string(3000, 'a')), "414");
  expect_refused(test::request("/echo", {{"host", "b"}}), "400");
  expect_refused({{":method", "GET"}, {":scheme", "http"}, {":authority", "a/b"}, {":path", "/echo"}}, "400");
  expect_refused(test::request("/echo", {}, "TRACE"), "405");
  expect_refused(test::request("/echo", {}, "get"), "400");
  expect_refused({{":method", "CONNECT"}, {":authority", "a"}}, "405");
  expect_refused(test::request("/echo", {{"expect", "x"}}), "417");
  expect_refused(test::request("/echo", {{"content-encoding", "br"}}), "415");
}

TEST_F(H2BadInput, H24_LengthsThatTheBodyDoesNotKeep) {
  for (const char* length : {"2", "0", "-1", "0x1", "1, 1", "99999999999999999999"}) {
    H2Peer peer = H2Peer::connect(server_.port());
    const size_t seen = server_.seen();
    peer.send_headers(1, test::request("/echo", {{"content-length", length}}, "POST"), /*end=*/false);
    peer.send_data(1, "x", true);
    EXPECT_EQ(peer.receive_answer(1).reset, uint32_t{NGHTTP2_PROTOCOL_ERROR}) << length;
    EXPECT_EQ(server_.seen(), seen) << length;
  }
}

TEST_F(H2BadInput, H24_HeadsOverTheLimit) {
  Fields many = test::request("/echo");
  for (int i = 0; i < 200; ++i) many.emplace_back("x-" + std::to_string(i), "1");
  expect_refused(many, "431");
  expect_refused(test::request("/echo", {{"x", std::string(9000, 'a')}}), "431");
}

// One entry in the table, referred to again and again: each byte on the wire asks for four thousand in memory.
TEST_F(H2BadInput, H24_HeaderBomb) {
  H2Peer peer = H2Peer::connect(server_.port());
  const size_t before = resident();
  std::string bomb = block(test::request("/echo")) + block({{"x", std::string(4000, 'a')}});
  bomb[block(test::request("/echo")).size()] = '\x40';  // into the table
  bomb += std::string(10'000, '\xBE');                  // and once more, please
  peer.send(frame(test::kHeaders, test::kEndHeaders | test::kEndStream, 1, bomb));
  const auto answer = peer.receive_answer(1);
  EXPECT_TRUE(answer.reset != 0 || (answer.head.contains(":status") && answer.head.at(":status") == "431"));
  EXPECT_LT(resident(), before + (size_t{16} << 20));
}

// CVE-2024-28182 and its kin: a head that never ends.
TEST_F(H2BadInput, H24_ContinuationFlood) {
  H2Peer peer = H2Peer::connect(server_.port());
  const size_t before = resident();
  peer.send(frame(test::kHeaders, test::kEndStream, 1, block(test::request("/echo"))));
  const std::string more = frame(test::kContinuation, 0, 1, block({{"x", std::string(1000, 'a')}}));
  for (int i = 0; i < 10'000 && peer.send(more); ++i) {
  }
  EXPECT_NE(peer.receive_goaway().value_or(1), uint32_t{NGHTTP2_NO_ERROR});
  EXPECT_EQ(server_.seen(), 0u);
  EXPECT_LT(resident(), before + (size_t{16} << 20));
}

// CVE-2023-44487: asked and taken back, as fast as the wire allows.
TEST_F(H2BadInput, H24_RapidReset) {
  H2Peer peer = H2Peer::connect(server_.port());
  const std::string head = block(test::request("/hold"));
  std::string burst;
  for (uint32_t stream = 1; stream < 2 * 5000; stream += 2)
    burst +=
        frame(test::kHeaders, test::kEndHeaders | test::kEndStream, stream, head) + frame(test::kReset, 0, stream, number(NGHTTP2_CANCEL));
  std::thread sender([&] { peer.socket().send(burst); });
  EXPECT_NE(peer.receive_goaway().value_or(1), uint32_t{NGHTTP2_NO_ERROR});
  sender.join();
  EXPECT_LT(server_.seen(), 2000u);
}

// CVE-2025-8671: frames that make the server itself reset the stream whose work it has begun.
TEST_F(H2BadInput, H24_StreamsThatTheServerMustReset) {
  H2Peer peer = H2Peer::connect(server_.port());
  const std::string head = block(test::request("/hold"));
  std::string burst;
  for (uint32_t stream = 1; stream < 2 * 5000; stream += 2)
    burst += frame(test::kHeaders, test::kEndHeaders | test::kEndStream, stream, head) + frame(test::kWindowUpdate, 0, stream, number(0));
  std::thread sender([&] { peer.socket().send(burst); });
  EXPECT_NE(peer.receive_goaway().value_or(1), uint32_t{NGHTTP2_NO_ERROR});
  sender.join();
  EXPECT_LT(server_.seen(), 2000u);
}

TEST_F(H2BadInput, H24_MoreStreamsThanAllowed) {
  H2Peer peer = H2Peer::connect(server_.port());
  for (uint32_t i = 0; i < 128; ++i) peer.send_headers(2 * i + 1, test::request("/hold"));
  ASSERT_TRUE(server_.await_held(128));
  peer.send_headers(257, test::request("/hold"));
  EXPECT_EQ(peer.receive(test::kReset, 257)->error(), uint32_t{NGHTTP2_REFUSED_STREAM});
  server_.release();
}

// Answers to PING and SETTINGS that nobody reads must neither pile up nor keep the connection for ever.
TEST_F(H2BadInput, H24_PingFlood) {
  H2Peer peer(test::RawSocket::connect(server_.port(), /*receive_buffer=*/4096));
  peer.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(test::kSettings, 0, 0));
  const size_t before = resident();
  std::string pings;
  for (int i = 0; i < 10'000; ++i) pings += frame(test::kPing, 0, 0, "12345678");
  while (peer.send(pings)) {  // ends when the server ends the connection
  }
  EXPECT_LT(resident(), before + (size_t{16} << 20));
}

TEST_F(H2BadInput, H24_SettingsFlood) {
  H2Peer peer(test::RawSocket::connect(server_.port(), /*receive_buffer=*/4096));
  peer.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(test::kSettings, 0, 0));
  const size_t before = resident();
  std::string settings;
  for (int i = 0; i < 10'000; ++i)
    settings += frame(test::kSettings, 0, 0, number(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 2) + number(65535));
  while (peer.send(settings)) {
  }
  EXPECT_LT(resident(), before + (size_t{16} << 20));
}

TEST_F(H2BadInput, H24_EmptyFrames) {
  H2Peer peer = H2Peer::connect(server_.port());
  peer.send_headers(1, test::request("/echo", {}, "POST"), /*end=*/false);
  std::string empty;
  for (int i = 0; i < 1000; ++i) empty += frame(test::kData, 0, 1);
  peer.send(empty);
  EXPECT_EQ(peer.receive_goaway(), uint32_t{NGHTTP2_ENHANCE_YOUR_CALM});
}

TEST_F(H2BadInput, H24_WindowsThatOverflow) {
  H2Peer connection = H2Peer::connect(server_.port());
  connection.send(frame(test::kWindowUpdate, 0, 0, number(0x7FFFFFFF)));
  EXPECT_EQ(connection.receive_goaway(), uint32_t{NGHTTP2_FLOW_CONTROL_ERROR});

  H2Peer stream = H2Peer::connect(server_.port());
  stream.send_headers(1, test::request("/hold"));
  ASSERT_TRUE(server_.await_held(1));
  stream.send(frame(test::kWindowUpdate, 0, 1, number(0x7FFFFFFF)));
  EXPECT_EQ(stream.receive(test::kReset, 1)->error(), uint32_t{NGHTTP2_FLOW_CONTROL_ERROR});
  EXPECT_TRUE(server_.await_cancelled(1));
}

/// Has no room for anything.
struct Full final : RequestHandler {
  explicit Full(std::promise<void>& told) : gone(told) {}
  void on_request(Head&) override {}
  std::span<char> body_room(std::optional<uint64_t>) override { return {}; }
  void body_filled(size_t) override { FAIL(); }
  void on_progress(bool) override {}
  void on_writable() override {}
  void on_gone() override { gone.set_value(); }
  std::promise<void>& gone;
};

TEST_F(H2BadInput, H24_MoreThanTheWindowHolds) {
  Loops loops(1);
  std::promise<void> gone;
  const auto server = Server::start_streaming(loops, {.http2 = true}, [&gone](ServerStream&) { return std::make_shared<Full>(gone); });
  H2Peer peer = H2Peer::connect((*server)->port());
  while (auto got = peer.receive())
    if (got->type == test::kSettings && (got->flags & test::kAck)) break;  // now its windows are known
  peer.send_headers(1, test::request("/", {}, "POST"), /*end=*/false);
  for (int i = 0; i < 16; ++i) peer.send_data(1, std::string(16384, 'x'), /*end=*/false);
  peer.send_data(1, "x", /*end=*/false);
  EXPECT_EQ(peer.receive(test::kReset, 1)->error(), uint32_t{NGHTTP2_FLOW_CONTROL_ERROR});
  gone.get_future().get();
}

// CVE-2019-9511, 9517: an answer is asked for and no room given for it.
TEST_F(H2BadInput, H24_StalledWindow) {
  H2Peer peer = H2Peer::connect(server_.port(), number(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 2) + number(0));
  peer.send_headers(1, test::request("/big"));
  EXPECT_EQ(peer.receive(test::kReset, 1)->error(), uint32_t{NGHTTP2_CANCEL});
}

TEST_F(H2BadInput, H24_AnswersThatNobodyReads) {
  H2Peer peer(test::RawSocket::connect(server_.port(), /*receive_buffer=*/4096));
  peer.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
            frame(test::kSettings, 0, 0, number(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 2) + number(0x7FFFFFFF)) +
            frame(test::kWindowUpdate, 0, 0, number(0x7FFF0000)));
  peer.send_headers(1, test::request("/big"));
  while (server_.registry.render().find("reason=\"write_timeout\"} 1") == std::string::npos) std::this_thread::sleep_for(5ms);
}

TEST_F(H2BadInput, H24_FramesOutOfPlace) {
  const std::string head = block(test::request("/echo"));
  const std::vector<std::string> bad = {
      frame(test::kData, 0, 0, "x"),                                                              // data of no stream
      frame(test::kData, 0, 1, "x"),                                                              // data of a stream that is not there
      frame(test::kHeaders, test::kEndHeaders, 2, head),                                          // a number that is the server's
      frame(test::kHeaders, test::kEndHeaders, 0, head),                                          //
      frame(test::kHeaders, 0, 1, head) + frame(test::kPing, 0, 0, "12345678"),                   // in the middle of a head
      frame(test::kContinuation, test::kEndHeaders, 1, head),                                     // of nothing
      frame(test::kPushPromise, test::kEndHeaders, 1, number(2) + head),                          // a client does not push
      frame(test::kSettings, 0, 1),                                                               //
      frame(test::kSettings, 0, 0, "12345"),                                                      // no multiple of six
      frame(test::kSettings, test::kAck, 0, "123456"),                                            //
      frame(test::kPing, 0, 0, "1"),                                                              //
      frame(test::kReset, 0, 1, number(0)),                                                       // of a stream that never was
      frame(test::kHeaders, test::kEndHeaders, 1, "\xFF\xFF\xFF\xFF\xFF\xFF"),                    // no HPACK
      frame(test::kHeaders, test::kEndHeaders | 8, 1, std::string("\xFF") + head.substr(0, 10)),  // padded beyond its end
      number(0xFFFFFF, 3) + std::string(6, '\0'),                                                 // longer than we take
      frame(test::kSettings, 0, 0, number(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 2) + number(0x80000000)),
      frame(test::kSettings, 0, 0, number(NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 2) + number(1)),
      frame(test::kSettings, 0, 0, number(NGHTTP2_SETTINGS_ENABLE_PUSH, 2) + number(2)),
  };
  for (const std::string& bytes : bad) {
    H2Peer peer = H2Peer::connect(server_.port());
    peer.send(bytes);
    const auto error = peer.receive_goaway();
    ASSERT_TRUE(error) << testing::PrintToString(bytes);
    EXPECT_NE(*error, uint32_t{NGHTTP2_NO_ERROR}) << testing::PrintToString(bytes);
  }
  H2Peer no_settings(server_.connect());
  no_settings.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(test::kPing, 0, 0, "12345678"));
  EXPECT_NE(no_settings.receive_goaway().value_or(0), uint32_t{NGHTTP2_NO_ERROR});
  EXPECT_EQ(server_.seen(), 0u);
}

TEST_F(H2BadInput, H24_FramesThatMeanNothingAreLetPass) {
  H2Peer peer = H2Peer::connect(server_.port());
  peer.send(frame(0xEE, 0xFF, 0, "unknown") + frame(test::kPriority, 0, 1, number(3) + "\x10") +
            frame(test::kSettings, 0, 0, number(0xABCD, 2) + number(7)) +
            frame(test::kHeaders, test::kEndHeaders, 1, block(test::request("/echo", {}, "POST"))) + frame(test::kData, 0, 1, "x") +
            frame(test::kHeaders, test::kEndHeaders | test::kEndStream, 1, block({{"a-trailer", "y"}})));
  EXPECT_EQ(peer.receive_answer(1).body, "POST /echo|x");
}

}  // namespace
}  // namespace serin::net
