// What webhooks are sent, and that its signature is the one that libraries for Standard Webhooks check.

#include "router/notify/webhook_message.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "router/config/signing_keys.h"
#include "runtime/base/config.h"
#include "tests/router/store/test_folder.h"

namespace serin::router {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// The example of the Standard Webhooks specification's reference libraries.
constexpr const char* kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

std::string write(const TestFolder& folder, const std::string& text, mode_t mode = 0600) {
  std::string path = folder.file("hook.secret");
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(::chmod(path.c_str(), mode), 0);
  return path;
}

TEST(WebhookMessage, SignsAsStandardWebhooksDoes) {
  const TestFolder folder;
  const auto keys = *read_signing_keys(write(folder, std::string(kSecret) + "\n"));
  EXPECT_EQ(signature(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})"),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(WebhookMessage, WhileAKeyIsReplacedBothSign) {
  const TestFolder folder;
  const auto keys = *read_signing_keys(write(folder, std::string(kSecret) + "\nwhsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX\n"));
  ASSERT_THAT(keys, SizeIs(2));
  const std::string value = signature(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})");
  EXPECT_THAT(value, HasSubstr("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1,"));
}

TEST(WebhookMessage, C8SecretsThatOthersMayReadOrThatAreNoneAreRefusedAndNotTold) {
  const TestFolder folder;
  const auto open = read_signing_keys(write(folder, kSecret, 0644));
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message, HasSubstr("chmod 600"));
  for (const char* text :
       {"", "\n", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_short", "whsec_!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!", "whsec_MfKQ"}) {
    const auto keys = read_signing_keys(write(folder, text));
    ASSERT_FALSE(keys) << text;
    EXPECT_THAT(keys.error().message, Not(HasSubstr("MfKQ")));
  }
  EXPECT_FALSE(read_signing_keys(folder.file("nowhere")));
}

TEST(WebhookMessage, AnEventIsACloudEvent) {
  const auto event = *config::Node::parse(event_json({.id = 7,
                                                      .wall_ms = 1'770'091'506'789,
                                                      .service = "digits",
                                                      .rollout = "digits-3",
                                                      .event = "rolled_back",
                                                      .actor = "router",
                                                      .detail = "err: \"7\" of 9"}),
                                          "event");
  EXPECT_EQ(*event.text("specversion", ""), "1.0");
  EXPECT_EQ(*event.text("id", ""), "7");
  EXPECT_EQ(*event.text("source", ""), "/serin/services/digits");
  EXPECT_EQ(*event.text("type", ""), "serin.rollout.rolled_back");
  EXPECT_EQ(*event.text("time", ""), "2026-02-03T04:05:06.789Z");
  EXPECT_EQ(*event.at("data")->text("detail", ""), "err: \"7\" of 9");
}

TEST(WebhookMessage, AQuestionSaysWhatItIsAbout) {
  const auto question = *config::Node::parse(question_json("confirm-promotion", {.id = "digits-3",
                                                                                 .service = "digits",
                                                                                 .stable = "1",
                                                                                 .canary = "2",
                                                                                 .phase = rollout::Phase::kPaused,
                                                                                 .step = 4,
                                                                                 .weight_ppm = 500'000}),
                                             "question");
  EXPECT_EQ(*question.text("type", ""), "confirm-promotion");
  EXPECT_EQ(*question.text("name", ""), "digits");
  EXPECT_EQ(*question.text("rollout", ""), "digits-3");
  EXPECT_EQ(*question.text("weight", ""), "50");
}

TEST(WebhookMessage, TheBytesStayAsReceiversKnowThem) {
  EXPECT_EQ(event_json({.id = 7,
                        .wall_ms = 1'770'091'506'789,
                        .service = "digits",
                        .rollout = "digits-3",
                        .event = "weight",
                        .actor = "router",
                        .detail = "\"why\"",
                        .weight_ppm = 62'500,
                        .previous = "00",
                        .digest = "ff"}),
            R"({"specversion":"1.0","id":"7","source":"/serin/services/digits","type":"serin.rollout.weight","subject":"digits-3",)"
            R"("time":"2026-02-03T04:05:06.789Z","datacontenttype":"application/json","data":{"id":7,"time":"2026-02-03T04:05:06.789Z",)"
            R"("wall_ms":1770091506789,"service":"digits","rollout":"digits-3","event":"weight","actor":"router","detail":"\"why\"",)"
            R"("weight":6.25,"weight_ppm":62500,"previous":"00","digest":"ff"}})");
  EXPECT_EQ(
      question_json("rollback", {.id = "digits-3",
                                 .service = "digits",
                                 .stable = "1",
                                 .canary = "2",
                                 .phase = rollout::Phase::kBaking,
                                 .step = 4,
                                 .weight_ppm = 1'000'000,
                                 .reason = "a\\b"}),
      R"({"type":"rollback","name":"digits","namespace":"serin","phase":"Baking","service":"digits","rollout":"digits-3","stable":"1",)"
      R"("canary":"2","step":4,"weight":100,"reason":"a\\b","metadata":{}})");
}

}  // namespace
}  // namespace serin::router
