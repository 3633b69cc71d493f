// event_feed_test.cc: server-sent events as a client sees them: over HTTP on loopback, the controller's real states, no browser.

#include "router/admin/event_feed.h"

#include <gmock/gmock.h>

#include "router/admin/admin_api.h"
#include "runtime/base/config.h"
#include "runtime/net/server.h"
#include "tests/router/router_fixture.h"
#include "tests/runtime/net/raw_socket.h"

namespace serin::router {
namespace {

using net::test::RawSocket;
using net::test::status_of;
using testing::HasSubstr;
using testing::Not;

struct Event {
  std::string name, data, id;
};

/// A client of events: it reads chunks, puts the lines together, and forgets comments.
class Client {
 public:
  Client(uint16_t port, const std::string& path, const std::string& last_event_id = "") : socket_(RawSocket::connect(port)) {
    const std::string last = last_event_id.empty() ? "" : "Last-Event-ID: " + last_event_id + "\r\n";
    socket_.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + last + "\r\n");
  }
  /// The head of the answer.
  std::string head() {
    while (text_.find("\r\n\r\n") == std::string::npos && more()) {
    }
    headed_ = true;
    const size_t end = text_.find("\r\n\r\n") + 4;
    const std::string head = text_.substr(0, end);
    text_.erase(0, end);
    return head;
  }
  /// The next event; none where the answer has ended.
  std::optional<Event> next() {
    if (!headed_) head();
    Event event;
    while (const auto line = next_line()) {
      if (line->starts_with("event: ")) event.name = line->substr(7);
      if (line->starts_with("data: ")) event.data = line->substr(6);
      if (line->starts_with("id: ")) event.id = line->substr(4);
      comments_ += line->starts_with(":");
      if (line->empty() && !event.name.empty()) return event;
    }
    return std::nullopt;
  }
  int comments() const { return comments_; }
  std::optional<Event> next(const std::string& name) {
    while (auto event = next())
      if (event->name == name) return event;
    return std::nullopt;
  }

 private:
  bool more() {
    if (!socket_.receive_some()) return false;
    text_ += socket_.take();
    return true;
  }
  /// A line of the body, out of its chunks.
  std::optional<std::string> next_line() {
    while (body_.find('\n') == std::string::npos) {
      size_t end;
      while ((end = text_.find("\r\n")) == std::string::npos)
        if (!more()) return std::nullopt;
      const size_t length = std::stoul(text_.substr(0, end), nullptr, 16);
      if (length == 0) return std::nullopt;
      while (text_.size() < end + 2 + length + 2)
        if (!more()) return std::nullopt;
      body_ += text_.substr(end + 2, length);
      text_.erase(0, end + 2 + length + 2);
    }
    const size_t end = body_.find('\n');
    std::string line = body_.substr(0, end);
    body_.erase(0, end + 1);
    return line;
  }

  RawSocket socket_;
  std::string text_, body_;
  bool headed_ = false;
  int comments_ = 0;
};

class EventFeedTest : public ::testing::Test {
 protected:
  EventFeedTest() {
    ServiceConfig letters = config_.services[0];
    letters.name = "letters";
    config_.services.push_back(letters);
    controller_ = open_controller(config_, metrics_);
    outcomes_ = std::make_unique<Outcomes>(config_.services, controller_->store(), metrics_, predictions_);
    api_ = std::make_unique<AdminApi>(config_, *controller_, *outcomes_, *access_, audit_, metrics_);
    server_ = *net::Server::start(loops_, {}, [this](const net::Request& request, net::Responder to) { to.send(api_->answer(request)); });
  }
  ~EventFeedTest() override { close(); }
  void close() {
    loops_.post_and_wait(0, [this] { api_->close(); });
  }
  Client open(const std::string& path = "/v1/events", const std::string& last = "") { return {server_->port(), path, last}; }
  static std::string field(const Event& event, std::initializer_list<const char*> path) {
    config::Node node = *config::Node::parse(event.data, "event");
    for (const char* key : path) node = *node.at(key);
    return *node.text();
  }
  double readers() { return metrics_.gauge("serin_route_event_readers", "")->value(); }

  TestFolder folder_;
  RouterConfig config_ = digits_config(folder_.file("router.db"));
  metrics::Registry metrics_;
  std::unique_ptr<Controller> controller_;
  AuditStream audit_{-1};
  std::unique_ptr<Access> access_ = *Access::open(config_.admin, metrics_);
  net::Loops loops_{1};
  AllPredictions predictions_;
  std::unique_ptr<Outcomes> outcomes_;
  std::unique_ptr<AdminApi> api_;
  std::unique_ptr<net::Server> server_;
};

TEST_F(EventFeedTest, BeginsWithAllThereIsAndGoesOnWithWhatChanges) {
  Client client = open();
  const std::string head = client.head();
  EXPECT_EQ(status_of(head), 200);
  EXPECT_THAT(head, HasSubstr("text/event-stream"));
  EXPECT_THAT(head, HasSubstr("no-store"));
  std::vector<std::string> seen;
  for (int i = 0; i < 4; ++i) {
    const auto event = client.next();
    ASSERT_TRUE(event);
    seen.push_back(event->name + " " + field(*event, {event->name == "service" ? "name" : "service"}));
  }
  EXPECT_THAT(seen, testing::ElementsAre("service digits", "rollout digits", "service letters", "rollout letters"));

  ASSERT_TRUE(controller_->start(spec_of("2", {5, 50}), {}));
  const auto started = client.next("rollout");
  ASSERT_TRUE(started);
  EXPECT_EQ(field(*started, {"rollout", "phase"}), "Progressing");
  ASSERT_TRUE(controller_->abort("digits", {}));
  const auto aborted = client.next("rollout");
  ASSERT_TRUE(aborted);
  EXPECT_EQ(field(*aborted, {"rollout", "phase"}), "RolledBack");
}

TEST_F(EventFeedTest, OfOneServiceOnly) {
  Client client = open("/v1/rollouts/letters/events");
  EXPECT_EQ(client.next()->name, "service");
  EXPECT_EQ(client.next()->name, "rollout");
  ASSERT_TRUE(controller_->start(spec_of("2", {5}), {}));
  rollout::Spec letters = spec_of("3", {7});
  letters.service = "letters";
  ASSERT_TRUE(controller_->start(letters, {}));
  EXPECT_EQ(field(*client.next("rollout"), {"rollout", "canary"}), "3") << "digits' rollout is not told here";
}

TEST_F(EventFeedTest, WhoComesBackIsSentWhatHasChangedSince) {
  Client first = open();
  std::string last;
  for (int i = 0; i < 4; ++i) last = first.next()->id;
  ASSERT_TRUE(controller_->start(spec_of("2", {5}), {}));
  Client again = open("/v1/events", last);
  const auto service = again.next(), status = again.next();
  ASSERT_TRUE(service && status);
  EXPECT_EQ(field(*service, {"name"}), "digits") << "its weights have changed";
  EXPECT_EQ(field(*status, {"rollout", "id"}), "digits-1");
  ASSERT_TRUE(controller_->abort("digits", {}));
  EXPECT_EQ(field(*again.next("rollout"), {"service"}), "digits") << "letters did not change";
}

TEST_F(EventFeedTest, IdsOfAnotherProcessOrNoneAtAllMeanAllIsNew) {
  for (const char* last : {"0011223344556677-99", "99", "-", "nonsense", "18446744073709551616", ""}) {
    Client client = open("/v1/events", last);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(client.next()) << last;
  }
}

TEST_F(EventFeedTest, TimeAloneIsNoChange) {
  ASSERT_TRUE(controller_->start(spec_of("2", {5}), {}));
  Client client = open("/v1/rollouts/digits/events");
  client.next();
  const auto before = client.next();
  ASSERT_TRUE(controller_->pause("digits", {}));
  const auto after = client.next("rollout");
  ASSERT_TRUE(before && after);
  EXPECT_EQ(field(*before, {"rollout", "phase"}), "Progressing");
  EXPECT_EQ(field(*after, {"rollout", "phase"}), "Paused") << "and nothing in between";
}

TEST_F(EventFeedTest, SilenceIsFilledAndAnAnswerEndsSoThatItsTokenIsAskedForAgain) {
  using std::chrono::milliseconds;
  EventFeed feed(config_, *controller_, metrics_, {.look = milliseconds(5), .heartbeat = milliseconds(20), .longest = milliseconds(200)});
  auto server = *net::Server::start(loops_, {}, [&](const net::Request& request, net::Responder to) {
    to.send(feed.open(*request.loop, std::nullopt, request.headers.get("last-event-id")));
  });
  Client client(server->port(), "/");
  std::string last;
  for (int i = 0; i < 4; ++i) last = client.next()->id;
  EXPECT_FALSE(client.next()) << "it has ended";
  EXPECT_GE(client.comments(), 2);
  ASSERT_TRUE(controller_->start(spec_of("2", {5}), {}));
  Client again(server->port(), "/", last);
  EXPECT_EQ(field(*again.next("rollout"), {"rollout", "id"}), "digits-1");
  loops_.post_and_wait(0, [&] { feed.close(); });
}

TEST_F(EventFeedTest, ReadersAreCountedAndBounded) {
  std::vector<Client> clients;
  for (size_t i = 0; i < EventFeed::kMostReaders; ++i) {
    clients.push_back(open());
    EXPECT_EQ(status_of(clients.back().head()), 200);
  }
  EXPECT_EQ(readers(), EventFeed::kMostReaders);
  const std::string refused = open().head();
  EXPECT_EQ(status_of(refused), 503);
  EXPECT_THAT(refused, HasSubstr("Retry-After: 5"));
  clients.clear();
  EXPECT_TRUE(eventually([&] { return readers() == 0; }));
  EXPECT_EQ(status_of(open().head()), 200);
}

TEST_F(EventFeedTest, ARouterThatEndsEndsThem) {
  Client client = open();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(client.next());
  close();
  EXPECT_FALSE(client.next());
  EXPECT_TRUE(server_->drain(std::chrono::seconds(10))) << "nothing is left that would go on for ever";
}

TEST_F(EventFeedTest, RefusesServicesThatThereAreNotAndOtherMethods) {
  EXPECT_EQ(status_of(open("/v1/rollouts/nope/events").head()), 404);
  RawSocket post = RawSocket::connect(server_->port());
  post.send("POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(status_of(post.receive_answer()), 405);
  RawSocket head = RawSocket::connect(server_->port());
  head.send("HEAD /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(head.receive_answer(/*head_only=*/true), HasSubstr("text/event-stream"));
  EXPECT_THAT(head.receive_answer(), HasSubstr("live"));
}

}  // namespace
}  // namespace serin::router
