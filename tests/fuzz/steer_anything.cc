#include "tests/fuzz/steer_anything.h"

#include <memory>

#include "router/admin/admin_api.h"
#include "router/config/read_config.h"
#include "router/proxy/outputs.h"
#include "router/proxy/prediction.h"
#include "router/rollout/replay.h"
#include "runtime/base/config.h"
#include "runtime/base/log.h"
#include "runtime/net/prometheus.h"
#include "tests/fuzz/must.h"
#include "tests/router/router_fixture.h"

namespace serin::fuzz {
namespace {

void read_specification(std::string_view text) {
  const auto document = config::Node::parse(text, "spec");
  const auto spec = document ? rollout::parse_spec(*document) : document.error();
  if (!spec) return;
  const std::string printed = rollout::print_spec(*spec);
  const auto again = rollout::parse_spec(config::Node::parse(printed, "printed").value());
  must(again.has_value(), "what is printed is read");
  must(rollout::print_spec(*again) == printed, "and is the same");
  uint32_t weight = 0;
  for (const rollout::Step& step : spec->steps) {
    must(step.weight_ppm == 0 || (step.weight_ppm > weight && step.weight_ppm <= rollout::kAll), "weights rise");
    weight = std::max(weight, step.weight_ppm);
  }
}

void read_record(std::string_view text) {
  const auto node = config::Node::parse(text, "record");
  const auto record = node ? rollout::parse_record(*node) : node.error();
  if (!record) return;
  for (const auto& event : record->events)
    if (event.good_before > 100'000) return;  // as many answers are told again: right, and slow
  const rollout::Replay replayed = rollout::replay(*record);
  must(replayed.bits.size() == record->events.size(), "every event is told");
}

void look_at_body(std::string_view body) {
  std::optional<size_t> json_bytes;
  if (!body.empty() && body[0] >= '0') json_bytes = static_cast<size_t>(body[0] - '0') * 16;
  const router::AnswerBody answer{body.substr(std::min<size_t>(1, body.size())), json_bytes};
  const router::Look look = router::look_at(answer, {}, 1, body.size());
  must(!look.output.label || look.output.form != 0, "a label has a form");
  if (!json_bytes) must(look.failed == router::says_failed(answer), "both ways to ask agree");
  (void)router::compare_answers(answer, answer, {}, 7);
  for (const auto take :
       {router::LabelConfig::Class::kArgmax, router::LabelConfig::Class::kValue, router::LabelConfig::Class::kThreshold}) {
    const router::Prediction prediction = router::read_prediction(answer, {.take = take});
    must(prediction.rows.empty() == (prediction.kind >= router::Prediction::Kind::kFailed), "what was read has rows");
  }
}

router::RouterConfig with_outcomes(router::RouterConfig config) {
  config.services[0].outcomes.push_back({.name = "conversion"});
  config.services[0].outcomes.push_back({.name = "accuracy", .labels = router::LabelConfig()});
  return config;
}

/// One router for all inputs: whatever it is asked, it must go on.
struct Admin {
  TestFolder folder;
  router::RouterConfig config = with_outcomes(router::digits_config(folder.file("router.db")));
  metrics::Registry metrics;
  std::unique_ptr<router::Controller> controller = router::open_controller(config, metrics);
  std::unique_ptr<router::Access> access = *router::Access::open(config.admin, metrics);
  router::AuditStream audit{-1};
  router::AllPredictions predictions;
  router::Outcomes outcomes{config.services, controller->store(), metrics, predictions};
  router::AdminApi api{config, *controller, outcomes, *access, audit, metrics};
  net::Loops loop{1};
};

void ask_admin(std::string_view text) {
  static Admin& admin = *[] {
    log::configure({.level = log::Level::kOff});
    return new Admin;
  }();
  const auto line = [&text] {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view found = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return found;
  };
  net::Request request{.method = std::string(line())};
  request.target = line();
  request.path = request.target.substr(0, request.target.find('?'));
  if (request.path.size() < request.target.size()) request.query = request.target.substr(request.path.size() + 1);
  if (!request.path.starts_with('/')) request.path.insert(0, "/");
  for (std::string_view header = line(); !header.empty(); header = line()) {
    const size_t colon = std::min(header.find(':'), header.size());
    request.headers.add(header.substr(0, colon), header.substr(std::min(colon + 1, header.size())));
  }
  request.body = text;
  request.peer = "127.0.0.1:1";
  request.loop = &admin.loop.loop(0);
  admin.loop.post_and_wait(0, [&] {
    const net::Response response = admin.api.answer(request);  // events are told on an io thread, and forgotten there
    must(response.status >= 200 && response.status < 600, "there is an answer");
    must(response.status != 500, "and it is no internal error");
  });
  const router::Split split = admin.controller->split(0);
  must(split.weight_ppm <= rollout::kAll && split.stable < 3, "and the split makes sense");
}

}  // namespace

void steer_anything(std::string_view input) {
  if (input.empty()) return;
  const std::string_view rest = input.substr(1);
  switch (input[0]) {
    case 's': return read_specification(rest);
    case 'c':
      if (const auto root = config::Node::parse(rest, "router.yaml")) (void)router::read_config(*root);
      return;
    case 'v': return read_record(rest);
    case 'p':
      if (const auto answer = net::read_prometheus_answer(rest)) (void)answer->one_number();
      return;
    case 'b': return look_at_body(rest);
    case 'a': return ask_admin(rest);
    default: return;
  }
}

}  // namespace serin::fuzz
