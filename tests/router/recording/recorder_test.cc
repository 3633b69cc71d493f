// recorder_test.cc: which requests are kept, what of them, and for how long; and that a restart and a reload lose none.

#include "router/recording/recorder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>

#include "router/config/sealed_file.h"
#include "router/recording/record.h"
#include "runtime/base/file.h"
#include "tests/router/store/test_folder.h"

namespace serin::router {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const auto kNow = Recorder::Clock::now();

RecordedRequest request(int number, Recorder::Clock::time_point at = kNow) {
  return {.method = "POST",
          .target = "/v2/models/digits/infer",
          .headers = {{"content-type", "application/json"}},
          .body = fmt::format("body {}", number),
          .at = std::chrono::time_point_cast<std::chrono::milliseconds>(at)};
}

std::vector<std::string> bodies(const Recorder& recorder, size_t most = 100, Recorder::Clock::time_point now = kNow) {
  std::vector<std::string> bodies;
  for (const auto& kept : recorder.latest(most, now)) bodies.push_back(kept->body);
  return bodies;
}

TEST(Recorder, TakesTheFirstOnesAndThenSomeEvenly) {
  Recorder recorder("digits", {.requests = 4, .keep = hours(4)});
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(recorder.wants(kNow));
    recorder.add(request(i));
  }
  EXPECT_FALSE(recorder.wants(kNow + minutes(59))) << "full: one an hour keeps four hours";
  EXPECT_TRUE(recorder.wants(kNow + minutes(60)));
  recorder.add(request(4, kNow + minutes(60)));
  EXPECT_THAT(bodies(recorder), ElementsAre("body 4", "body 3", "body 2", "body 1"));
  EXPECT_THAT(bodies(recorder, 2), ElementsAre("body 4", "body 3"));
  EXPECT_THAT(bodies(recorder, 9, kNow + hours(4) + seconds(1)), ElementsAre("body 4")) << "the others are too old";
}

TEST(Recorder, KeepsToItsMemory) {
  Recorder recorder("digits", {.requests = 1000, .bytes = 1 << 20});
  for (int i = 0; i < 20; ++i) {
    RecordedRequest large = request(i, kNow + hours(i));
    large.body = std::string(100'000, 'x');
    recorder.add(std::move(large));
  }
  EXPECT_EQ(bodies(recorder, 100, kNow + hours(20)).size(), 10U);
  RecordedRequest huge = request(0, kNow + hours(30));
  huge.body = std::string(2 << 20, 'x');
  recorder.add(std::move(huge));
  EXPECT_EQ(bodies(recorder, 100, kNow + hours(20)).size(), 10U) << "larger than all its memory: not taken, and nothing is lost for it";
}

TEST(Recorder, ReadsItsFileAfterARestart) {
  const TestFolder folder;
  const RecordingConfig config{.file = folder.file("recording"), .key = {7}};
  {
    Recorder recorder("digits", config);
    recorder.add(request(1));
    recorder.add(request(2));
  }
  EXPECT_THAT(*read_file(config.file, 1 << 20), ::testing::Not(HasSubstr("body")));
  EXPECT_THAT(bodies(Recorder("digits", config)), ElementsAre("body 2", "body 1"));

  RecordingConfig other = config;
  other.key = {8};
  const std::string before = *read_file(config.file, 1 << 20);
  {
    Recorder recorder("digits", other);
    EXPECT_TRUE(bodies(recorder).empty());
    recorder.add(request(3));
    EXPECT_TRUE(recorder.save());
  }
  EXPECT_EQ(*read_file(config.file, 1 << 20), before) << "a file that cannot be read is not written over";
}

TEST(Recorder, OutlivesAReload) {
  const TestFolder folder;
  metrics::Registry first, second;
  Recorders recorders;
  const auto before = recorders.get("digits", {}, first);
  before->add(request(1));
  EXPECT_EQ(recorders.get("digits", {}, second), before) << "the same settings";
  const RecordingConfig smaller{.requests = 10, .file = folder.file("recording"), .key = {7}};
  const auto after = recorders.get("digits", smaller, second);
  EXPECT_THAT(bodies(*after), ElementsAre("body 1"));
  EXPECT_FALSE(before->wants(kNow + hours(100))) << "requests of the earlier generation are not recorded any more";
  EXPECT_TRUE(after->save());
  EXPECT_THAT(bodies(Recorder("digits", smaller)), ElementsAre("body 1"));
}

TEST(Recorder, DeletesWhatIsTooOldInItsFileAsWell) {
  const TestFolder folder;
  const RecordingConfig config{.keep = hours(100), .file = folder.file("recording"), .key = {7}};
  Recorder("digits", config).add(request(1, kNow - hours(50)));
  RecordingConfig shorter = config;
  shorter.keep = hours(1);
  EXPECT_TRUE(bodies(Recorder("digits", shorter)).empty());
  EXPECT_EQ(read_sealed(config.file, config.key, "recorded requests of digits")->size(), 1U) << "its settings only";
}

TEST(Recorder, ForgetsRequestsOfWhichLessIsToBeKept) {
  const TestFolder folder;
  metrics::Registry registry;
  Recorders recorders;
  const RecordingConfig before{.file = folder.file("recording"), .key = {7}};
  recorders.get("digits", before, registry)->add(request(1));
  RecordingConfig redacting = before;
  redacting.redact = {"/user"};
  EXPECT_TRUE(bodies(*recorders.get("digits", redacting, registry)).empty());
  recorders.keep_only({});
  EXPECT_EQ(read_sealed(before.file, before.key, "recorded requests of digits")->size(), 1U);

  Recorder("digits", redacting).add(request(2));
  EXPECT_TRUE(bodies(Recorder("digits", before)).empty()) << "after a restart, too";
}

TEST(Recorder, GoesOnWithANewKey) {
  const TestFolder folder;
  metrics::Registry registry;
  const RecordingConfig before{.file = folder.file("recording"), .key = {7}};
  RecordingConfig rotated = before;
  rotated.key = {8};
  {
    Recorders recorders;
    recorders.get("digits", before, registry)->add(request(1));
    EXPECT_TRUE(recorders.get("digits", before, registry)->save());
    recorders.get("digits", rotated, registry)->add(request(2));
  }
  EXPECT_THAT(bodies(Recorder("digits", rotated)), ElementsAre("body 2", "body 1"));
}

TEST(Recorder, SendsItsRequestsOnceForARollout) {
  metrics::Registry registry;
  Recorders recorders;
  EXPECT_TRUE(recorders.get("digits", {}, registry)->begin_replay("digits", 7));
  EXPECT_FALSE(recorders.get("digits", {}, registry)->begin_replay("digits", 7)) << "after a reload";
  EXPECT_FALSE(recorders.get("digits", {.requests = 5}, registry)->begin_replay("digits", 7));
  EXPECT_TRUE(recorders.get("digits", {.requests = 5}, registry)->begin_replay("digits", 8));
}

TEST(RecordedRequest, IsReadBackAndRefusedIfItIsCut) {
  RecordedRequest sent = request(1);
  sent.grpc = sent.names_model = true;
  const std::string bytes = encode(sent);
  EXPECT_EQ(*decode_request(bytes), sent);
  size_t refused = 0;
  for (size_t size = 0; size < bytes.size(); ++size) refused += !decode_request(bytes.substr(0, size));
  EXPECT_EQ(refused, bytes.size() - 1) << "only without its one header it is a request as well";
}

net::Head head(std::initializer_list<std::pair<const char*, const char*>> headers) {
  net::Head head;
  head.method = "POST";
  head.target = "/v2/models/digits/infer?a=b";
  for (const auto& [name, value] : headers) head.headers.add(name, value);
  return head;
}

TEST(Record, KeepsNoCredentials) {
  protocol::JsonPointerReader json;
  const auto made = record({.headers = {"x-tenant"}},
                           head({{"Authorization", "Bearer secret"},
                                 {"Cookie", "secret"},
                                 {"X-Forwarded-For", "10.0.0.1"},
                                 {"Content-Type", "application/json"},
                                 {"X-Tenant", "a"}}),
                           "not JSON", json);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->target, "/v2/models/digits/infer") << "a query may have a token";
  EXPECT_EQ(made->body, "not JSON");
  EXPECT_THAT(made->headers, ElementsAre(Pair("Content-Type", "application/json"), Pair("X-Tenant", "a")));
}

TEST(Record, RedactsOrKeepsNothing) {
  protocol::JsonPointerReader json;
  const RecordingConfig config{.redact = {"/parameters/user"}};
  const std::string body = R"({"parameters": {"user": "Li Ming"}, "inputs": []})";
  EXPECT_EQ(record(config, head({}), body, json)->body, R"({"parameters": {"user": ""}, "inputs": []})");
  EXPECT_FALSE(record(config, head({{"Content-Encoding", "gzip"}}), body, json));
  EXPECT_FALSE(record(config, head({{"Inference-Header-Content-Length", "49"}}), body + "\x01\x02 Li", json))
      << "a tensor may have the name, too";
  EXPECT_FALSE(record(config, head({}), "user=Li", json));
}

}  // namespace
}  // namespace serin::router
