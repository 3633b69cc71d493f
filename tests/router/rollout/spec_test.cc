// What a specification may say, and what it is told when it says something else.

#include "router/rollout/spec.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

namespace serin::rollout {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::AllOf;
using testing::HasSubstr;

Result<Spec> parse(std::string_view text) {
  SERIN_TRY(const config::Node document, config::Node::parse(text, "rollout.yaml"));
  return parse_spec(document);
}

/// A document that is right but for one line.
Result<Spec> parse_with(const std::string& line) { return parse("service: digits\ncanary: {version: 7}\n" + line); }

std::string complaint(const std::string& line) {
  const auto spec = parse_with(line);
  return spec ? "(accepted)" : spec.error().message;
}

TEST(Spec, ReadsEveryLineOfTheReference) {
  const auto spec = parse(R"(
kind: Rollout
service: resnet
stable: {version: 3}
canary: {version: 4}
steps: [{shadow: {percent: 10, until: certified}}, {setWeight: 1}, {setWeight: 5, until: certified},
        {pause: {}}, {pause: {duration: 90s}}, {setWeight: 50, until: {duration: 10m}}, {promote: {bake: 30m, control: 2.5}}]
guard:
  falseRollback: 0.01
  errors: {max: 1%, tolerateRatio: 1.5}
  latency: {p99: 50ms, p50: 5ms, slack: 20%, floor: 2ms, deadline: 2s, baseline: 500, skip: 10}
  output: {compare: values, output: logits, maxDisagreement: 3%, rtol: 1e-2, atol: 1e-4, shadow: 5}
  whenStableBreachesToo: rollback
  unit: request
certify: {margin: {errors: 1%, latency: 3%}, confidence: 90%, maxStepDuration: 2h, onTimeout: pause}
shield: {retryStable: false, budget: 10%}
)");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->service, "resnet");
  EXPECT_EQ(spec->stable, "3");
  EXPECT_EQ(spec->canary, "4");

  ASSERT_EQ(spec->steps.size(), 6u);
  EXPECT_EQ(spec->steps[0].shadow_ppm, 100'000u);
  EXPECT_EQ(spec->steps[1].weight_ppm, 10'000u);
  EXPECT_EQ(spec->steps[1].until, Step::Until::kCertified);
  EXPECT_TRUE(spec->steps[3].is_pause());
  EXPECT_EQ(spec->steps[3].until, Step::Until::kManual);
  EXPECT_EQ(spec->steps[4].duration, std::chrono::seconds(90));
  EXPECT_EQ(spec->steps[5].until, Step::Until::kDuration);
  EXPECT_EQ(spec->steps[5].duration, minutes(10));
  EXPECT_EQ(spec->bake, minutes(30));
  EXPECT_EQ(spec->bake_control_ppm, 25'000u);

  const Guard& guard = spec->guard;
  EXPECT_EQ(guard.false_rollback, 0.01);
  EXPECT_EQ(guard.errors_max, 0.01);
  EXPECT_EQ(guard.tolerate_ratio, 1.5);
  ASSERT_EQ(guard.latency_max.size(), 2u);
  EXPECT_EQ(guard.latency_max[1].limit, milliseconds(50));
  EXPECT_EQ(guard.latency_slack, 0.2);
  EXPECT_EQ(guard.latency_floor, milliseconds(2));
  EXPECT_EQ(guard.deadline, milliseconds(2000));
  EXPECT_EQ(guard.latency_baseline, 500u);
  EXPECT_EQ(guard.latency_skip, 10u);
  EXPECT_EQ(guard.compare, Guard::Compare::kValues);
  EXPECT_EQ(guard.output, "logits");
  EXPECT_EQ(guard.max_disagreement, 0.03);
  EXPECT_EQ(guard.shadow_ppm, 50'000u);
  EXPECT_FALSE(guard.judge_few);
  EXPECT_EQ(guard.when_stable_breaches_too, Guard::Breach::kRollback);
  EXPECT_EQ(guard.unit, Guard::Unit::kRequest);

  EXPECT_FALSE(spec->certify.taper);
  EXPECT_EQ(spec->certify.margin_latency, 0.03);
  EXPECT_EQ(spec->certify.confidence, 0.9);
  EXPECT_EQ(spec->certify.max_step_duration, hours(2));
  EXPECT_FALSE(spec->shield.retry_stable);
  EXPECT_EQ(spec->shield.budget, 0.1);
}

TEST(Spec, NeedsOnlyAServiceAndACanary) {
  const auto spec = parse_with("");
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_EQ(spec->steps.size(), 6u);
  EXPECT_EQ(spec->steps[0].shadow_ppm, 100'000u);
  EXPECT_EQ(spec->steps[5].weight_ppm, kAll);
  EXPECT_EQ(spec->guard.false_rollback, 0.001);
  EXPECT_FALSE(spec->guard.shadow_ppm);
  EXPECT_TRUE(spec->guard.judge_few);
  EXPECT_TRUE(spec->certify.taper);
}

/// Path and text of all scalars below a node.
void scalars_below(const config::Node& node, std::map<std::string, std::string>& found) {
  if (node.is_scalar()) found.emplace(node.path(), node.text().value());
  for (const config::Node& item : node.items()) scalars_below(item, found);
  for (const std::string& key : node.keys())
    if (const auto value = node.find(key)) scalars_below(*value, found);
}

/// Defaults that the schema states, by the path of their key: "guard.latency.slack". Of a list they are those of its first entry.
void stated_defaults(const config::Node& schema, const config::Node& types, const std::string& path,
                     std::map<std::string, std::string>& found) {
  if (const auto value = schema.find("default")) found.emplace(path, value->text().value());
  if (const auto reference = schema.find("$ref")) stated_defaults(*types.find(reference->text()->substr(8)), types, path, found);
  if (const auto entries = schema.find("items")) stated_defaults(*entries, types, path + "[0]", found);
  if (const auto alternatives = schema.find("anyOf"))
    for (const config::Node& alternative : alternatives->items()) stated_defaults(alternative, types, path, found);
  if (const auto keys = schema.find("properties"))
    for (const std::string& key : keys->keys())
      if (const auto value = keys->find(key)) stated_defaults(*value, types, path.empty() ? key : path + "." + key, found);
}

TEST(Spec, HasTheDefaultsThatTheSchemaStates) {
  const auto schema = config::Node::parse(spec_schema(), "rollout.schema.json");
  ASSERT_TRUE(schema) << schema.error().message;
  std::map<std::string, std::string> stated;
  stated_defaults(*schema, *schema->find("$defs"), "", stated);
  std::erase_if(stated, [](const auto& entry) {
    return entry.first.starts_with("guard.prometheus.") || entry.first.starts_with("guard.outcomes.");
  });  // again, for one without a list

  // A specification is printed with every default written out.
  const auto spec = parse_with("guard: {prometheus: {name: q, address: 'http://p', query: x, max: 1}, outcomes: {metric: accuracy}}");
  ASSERT_TRUE(spec) << spec.error().message;
  const std::string printed = print_spec(*spec);
  std::map<std::string, std::string> written;
  for (const char* part : {"guard", "certify", "shield"})
    scalars_below(*config::Node::parse(printed, "printed").value().find(part), written);
  written["capacity"] = config::Node::parse(printed, "printed").value().find("capacity")->text().value();
  for (const char* given : {"name", "address", "query", "max"}) written.erase(std::string("guard.prometheus[0].") + given);
  written.erase("guard.outcomes[0].metric");
  EXPECT_EQ(stated.extract("guard.resources").mapped(), "auto");      // short for its keys
  EXPECT_EQ(written.extract("guard.output.output").mapped(), "");     // the first one: no name
  EXPECT_EQ(written.extract("certify.onTimeout").mapped(), "pause");  // its only value

  const auto keys = [](const auto& map) {
    std::vector<std::string> names;
    for (const auto& entry : map) names.push_back(entry.first);
    return names;
  };
  EXPECT_EQ(keys(stated), keys(written));
  for (const auto& [path, value] : stated) {
    const auto number = [](const std::string& text) { return config::parse_fraction(text); };
    const auto time = [](const std::string& text) { return config::parse_duration(text); };
    const std::string& ours = written[path];
    EXPECT_TRUE(value == ours || (number(value) && number(value) == number(ours)) || (time(value) && time(value) == time(ours)))
        << path << ": " << value << " in the schema, " << ours << " in the specification";
  }
}

TEST(Spec, HasAWordForDisagreementAndMirroringThatAreFoundOut) {
  const auto guard = [](const std::string& output) { return parse_with("guard: {output: " + output + "}").value().guard; };
  EXPECT_EQ(guard("{compare: values}").max_disagreement, 0.01);
  EXPECT_TRUE(guard("{compare: values}").judge_few);
  EXPECT_EQ(guard("{maxDisagreement: auto, shadow: auto}").max_disagreement, 0.1);
  EXPECT_FALSE(guard("{maxDisagreement: 10%}").judge_few);

  // A rollout's guard over its service's: auto follows the comparison, a number stays.
  const auto over = [&](const char* service, const char* rollout) {
    return parse_guard(config::Node::parse(fmt::format("output: {}", rollout), "guard").value(), guard(service)).value().max_disagreement;
  };
  EXPECT_EQ(over("{compare: values}", "{compare: label}"), 0.1);
  EXPECT_EQ(over("{}", "{compare: values}"), 0.01);
  EXPECT_EQ(over("{maxDisagreement: 20%}", "{compare: values}"), 0.2);
  EXPECT_EQ(guard("{shadow: 0}").shadow_ppm, 0u);
  const Guard limited = guard("{maxDisagreement: 5%, shadow: 2}");
  const auto again = parse_guard(config::Node::parse("output: {maxDisagreement: auto, shadow: auto}", "guard").value(), limited);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->judge_few && !again->shadow_ppm && again->max_disagreement == 0.1);
}

TEST(Spec, JudgesResourcesUnlessTheyAreOff) {
  const auto resources = [](const std::string& text) { return parse_with("guard: {resources: " + text + "}").value().guard.resources; };
  EXPECT_TRUE(resources("auto").on);
  EXPECT_EQ(resources("auto").interval, std::chrono::seconds(5));
  EXPECT_FALSE(resources("off").on);
  const ResourceGuard named = resources("{memory: heap_bytes, cpu: off, memoryLimit: 1e9, port: 8002, horizon: 2h}");
  EXPECT_EQ(named.memory, "heap_bytes");
  EXPECT_EQ(named.cpu, "");
  EXPECT_EQ(named.memory_limit, 1e9);
  EXPECT_EQ(named.port, 8002);
  EXPECT_EQ(named.horizon, std::chrono::hours(2));
  for (const auto& [text, words] : {std::pair("{memory: 1x}", "the name of a metric, or off"),
                                    {"{path: metrics}", "a path such as /metrics"},
                                    {"{interval: 10ms}", "at least 100ms"},
                                    {"{cpuRatio: 1}", "cpuRatio"},
                                    {"sometimes", "auto"},
                                    {"{leak: 1}", "leak"}})
    EXPECT_THAT(complaint(std::string("guard: {resources: ") + text + "}"), HasSubstr(words)) << text;
}

TEST(Spec, AcceptsJsonAndAPlainListOfWeights) {
  const auto spec = parse(R"({"service": "digits", "stable": 1, "canary": {"version": 2}, "steps": [5, 25, 50, 100]})");
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_EQ(spec->steps.size(), 4u);
  EXPECT_EQ(spec->steps[1].weight_ppm, 250'000u);
  EXPECT_EQ(spec->stable, "1");
}

TEST(Spec, PrintsWhatItReadsBack) {
  for (const std::string line :
       {"", "steps: [0.25, 12.5, 100]", "steps: [{setWeight: 5}, {pause: {}}, {pause: {duration: 1m}}, {promote: {bake: 1h}}]",
        "guard: {errors: {max: 1%}, latency: {p99.9: 50ms, deadline: 1s}, output: {compare: \"off\"}}", "certify: {margin: 2%}",
        "guard: {output: {output: 'a \"b\": c', drift: off}}", "guard: {output: {compare: values, maxDisagreement: 3%, shadow: 0}}",
        "dryRun: [output]",
        "guard: {slices: [{name: a, header: b}, {name: c, json: '/d \"~1'}, {name: e, bytes: [1, 2]}, {name: f, label: true}]}",
        "shield: {hedge: \"off\"}", "guard: {outcomes: [{metric: accuracy, margin: 0.0125}, {metric: basket}]}",
        "guard: {prometheus: {name: q, address: 'http://p:9090', query: 'rate(x{a=\"b\\\\n\"}[1m]) > 0', max: 1e-3, interval: 1m}}",
        "guard: {resources: \"off\"}",
        "guard: {resources: {path: /m, port: 8002, interval: 1s, memory: a_b, descriptors: \"off\", gpuMemory: \"off\", cpu: c:d, "
        "requests: n_total, "
        "memoryLimit: 2e9, descriptorLimit: 1000, gpuMemoryLimit: 1e10, cpuRatio: 2, horizon: 1h}}"}) {
    const auto spec = parse_with(line);
    ASSERT_TRUE(spec) << spec.error().message;
    const std::string printed = print_spec(*spec);
    const auto again = parse(printed);
    ASSERT_TRUE(again) << again.error().message << "\n" << printed;
    EXPECT_EQ(print_spec(*again), printed);
    EXPECT_EQ(again->steps.size(), spec->steps.size());
    EXPECT_EQ(again->guard.output, spec->guard.output);
  }
}

TEST(Spec, NamesTheUnknownKeyItsLineAndWhatIsAllowed) {
  EXPECT_THAT(complaint("guard:\n  errors: {treshold: 1%}\n"),
              AllOf(HasSubstr("rollout.yaml:4:12"), HasSubstr("unknown key 'treshold' under guard.errors"),
                    HasSubstr("allowed: max, tolerateRatio")));
}

TEST(Spec, SaysWhatIsNotSupportedYet) {
  for (const std::string line : {"replicas: {max: 3}", "replicas:", "steps: [{analysis: {}}]"})
    EXPECT_THAT(complaint(line), HasSubstr("not supported yet")) << line;
  EXPECT_THAT(complaint("webhooks: [{type: event}]"), HasSubstr("router.yaml"));
}

TEST(Spec, ReadsWhoGoesToTheCanary) {
  const auto spec = parse(R"(
service: digits
canary:
  version: 7
  baseline: 6-fresh
  sticky: {header: X-User, salt: spring, bothArms: true}
  cohort: {header: X-Cohort, values: [beta, staff]}
guard: {unit: key}
)");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->baseline, "6-fresh");
  EXPECT_EQ(spec->sticky.header, "x-user");
  EXPECT_EQ(spec->sticky.salt, "spring");
  EXPECT_EQ(spec->cohort.header, "x-cohort");
  EXPECT_EQ(spec->cohort.values, (std::vector<std::string>{"beta", "staff"}));
  EXPECT_EQ(spec->guard.unit, Guard::Unit::kKey);
}

TEST(Spec, RefusesCohortsAndKeysThatCannotBe) {
  for (const auto& [canary, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {"{version: 7, sticky: {}}", "must name a header or a cookie"},
           {"{version: 7, sticky: {header: a, cookie: b}}", "must name a header or a cookie"},
           {"{version: 7, sticky: {header: 'a b'}}", "name of a header"},
           {"{version: 7, sticky: {header: a, bothArms: false}}", "leave it out"},
           {"{version: 7, cohort: {header: a, values: []}}", "must be a list"},
           {"{version: 7, cohort: {values: [b]}}", "header"},
           {"{version: 7, baseline: 7}", "is the canary itself"},
           {"{version: 7, baseline: auto}", "must name a version"}}) {
    const auto spec = parse(std::string("service: digits\ncanary: ") + canary);
    ASSERT_FALSE(spec) << canary;
    EXPECT_THAT(spec.error().message, HasSubstr(words)) << canary;
  }
  EXPECT_THAT(complaint("guard: {unit: key}"), HasSubstr("unit: key needs canary: {sticky"));
}

TEST(Spec, ReadsQueriesOfPrometheus) {
  const auto spec = parse_with(R"(
guard:
  prometheus:
    - {name: queue, address: "http://prometheus:9090", query: 'max(queue_length{app="digits"})', max: 100, interval: 5s, breaches: 2}
    - {name: gpu, address: "http://prometheus:9090", query: up, max: -0.5}
)");
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_EQ(spec->guard.prometheus.size(), 2u);
  EXPECT_EQ(spec->guard.prometheus[0].query, R"(max(queue_length{app="digits"}))");
  EXPECT_EQ(spec->guard.prometheus[0].breaches, 2);
  EXPECT_EQ(spec->guard.prometheus[1].max, -0.5);
  for (const auto& [guard, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {"[]", "1 to 16"},
           {"[{name: a, query: up, max: 1}]", "address"},
           {"[{name: a, address: 'ftp://p', query: up, max: 1}]", "http://HOST:PORT"},
           {"[{name: 'a b', address: 'http://p', query: up, max: 1}]", "name of 1 to 64"},
           {"[{name: a, address: 'http://p', query: '', max: 1}]", "PromQL"},
           {"[{name: a, address: 'http://p', query: up, max: .nan}]", "max"},
           {"[{name: a, address: 'http://p', query: up, max: 1, interval: 1ms}]", "at least 100ms"},
           {"[{name: a, address: 'http://p', query: up, max: 1}, {name: a, address: 'http://p', query: up, max: 2}]", "given twice"}})
    EXPECT_THAT(complaint(std::string("guard: {prometheus: ") + guard + "}"), HasSubstr(words)) << guard;
}

TEST(Spec, ReadsLimitsOfOutcomes) {
  const auto spec = parse_with("guard: {outcomes: [{metric: accuracy, margin: 0.01}, {metric: basket}]}");
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_EQ(spec->guard.outcomes.size(), 2u);
  EXPECT_EQ(spec->guard.outcomes[0].metric, "accuracy");
  EXPECT_EQ(spec->guard.outcomes[0].margin, 0.01);
  EXPECT_EQ(spec->guard.outcomes[1].margin, 0);
  for (const auto& [guard, words] :
       std::initializer_list<std::pair<const char*, const char*>>{{"[]", "1 to 16"},
                                                                  {"accuracy", "1 to 16"},
                                                                  {"[accuracy]", "must be a map"},
                                                                  {"[{margin: 1}]", "metric"},
                                                                  {"[{metric: ''}]", "must be the name of one"},
                                                                  {"[{metric: a, margin: -1}]", "margin"},
                                                                  {"[{metric: a, margin: 1%}]", "margin"},
                                                                  {"[{metric: a, limit: 1}]", "unknown key 'limit'"},
                                                                  {"[{metric: a}, {metric: a, margin: 1}]", "given twice"}})
    EXPECT_THAT(complaint(std::string("guard: {outcomes: ") + guard + "}"), HasSubstr(words)) << guard;
}

TEST(Spec, ReadsSlices) {
  const auto spec = parse_with(R"(
guard:
  slices:
    - {name: country, header: X-Country}
    - {name: language, json: /parameters/language}
    - {name: size, bytes: [4096, 65536]}
    - {name: digit, label: true}
)");
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_EQ(spec->guard.slices.size(), 4U);
  EXPECT_EQ(spec->guard.slices[0].key, "x-country");
  EXPECT_EQ(spec->guard.slices[1].key, "/parameters/language");
  EXPECT_EQ(spec->guard.slices[2].bounds, (std::vector<uint64_t>{4096, 65536}));
  EXPECT_EQ(spec->guard.slices[3].by, Slice::By::kLabel);
  for (const auto& [slices, words] :
       std::initializer_list<std::pair<const char*, const char*>>{{"{name: a, header: b}", "list of at most 4"},
                                                                  {"[{header: b}]", "name"},
                                                                  {"[{name: 'a:b', header: b}]", "1 to 32 letters"},
                                                                  {"[{name: a}]", "one of header, json, bytes, label"},
                                                                  {"[{name: a, header: b, json: /c}]", "one of header, json, bytes, label"},
                                                                  {"[{name: a, json: c}]", "JSON pointer such as /parameters/language"},
                                                                  {"[{name: a, json: /c~}]", "JSON pointer"},
                                                                  {"[{name: a, bytes: 5}]", "1 to 15 sizes"},
                                                                  {"[{name: a, bytes: [5, 5]}]", "must be above the size before it"},
                                                                  {"[{name: a, label: false}]", "must be true"},
                                                                  {"[{name: a, label: true}, {name: b, label: true}]", "label given twice"},
                                                                  {"[{name: a, header: b}, {name: a, header: c}]", "'a' given twice"}})
    EXPECT_THAT(complaint(std::string("guard: {slices: ") + slices + "}"), HasSubstr(words)) << slices;
}

TEST(Spec, KnowsBlueGreen) {
  const auto spec = parse_with("steps: blue-green");
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_EQ(spec->steps.size(), 3u);
  EXPECT_TRUE(spec->steps[0].is_shadow());
  EXPECT_TRUE(spec->steps[1].is_pause());
  EXPECT_EQ(spec->steps[1].until, Step::Until::kManual);
  EXPECT_EQ(spec->steps[2].weight_ppm, kAll);
  EXPECT_THAT(complaint("steps: green-blue"), HasSubstr("or blue-green"));
}

TEST(Spec, KnowsAPauseAndAPromotionThatSayNothing) {
  const auto spec = parse_with("steps: [5, {pause: }, {promote: }]");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(print_spec(*spec), print_spec(*parse_with("steps: [5, {pause: {}}, {promote: {}}]")));
}

TEST(Spec, NamesTheGuardsThatOnlyRehearse) {
  EXPECT_EQ(parse_with("dryRun: [output, latency, output]").value().dry_run, (std::vector<std::string>{"output", "latency"}));
  EXPECT_THAT(complaint("dryRun: [everything]"), HasSubstr("must be one of err, rej"));
  EXPECT_THAT(complaint("dryRun: output"), HasSubstr("must be a list"));
}

// Bad input R1 (tests/README.md)
TEST(Spec, R1RefusesWeightsThatAreNone) {
  for (const std::string weight : {"-1", "101", "nan", ".nan", "1.23456", "1e1", "0x5", "5.", "", "5 percent", "100.0001"})
    EXPECT_FALSE(parse_weight(weight)) << weight;
  EXPECT_EQ(parse_weight("5").value(), 50'000u);
  EXPECT_EQ(parse_weight("0.0001%").value(), 1u);
  EXPECT_EQ(parse_weight("12.5 %").value(), 125'000u);
  EXPECT_EQ(parse_weight("100").value(), kAll);
  EXPECT_THAT(complaint("steps: [5, 101]"), AllOf(HasSubstr("steps[1]"), HasSubstr("'101'"), HasSubstr("0 to 100")));
}

TEST(Spec, RulesAreADocumentThatNamesNoVersions) {
  const auto document = config::Node::parse("name: x\nrules:\n  steps: [5, 100]\n  certify: {confidence: 99%}\n", "release.yaml");
  ASSERT_TRUE(document);
  config::Problems none;
  const Spec rules = parse_rules(*document->find("rules"), none);
  EXPECT_TRUE(none.all().empty());
  EXPECT_EQ(rules.steps.size(), 2U);
  EXPECT_DOUBLE_EQ(rules.certify.confidence, 0.99);

  const auto wrong = config::Node::parse("rules:\n  canary: 2\n  steps: [5, 5]\n", "release.yaml");
  ASSERT_TRUE(wrong);
  config::Problems problems;
  (void)parse_rules(*wrong->find("rules"), problems);
  ASSERT_EQ(problems.all().size(), 2U);
  EXPECT_THAT(problems.all()[0].message, AllOf(HasSubstr("release.yaml:2:3"), HasSubstr("unknown key 'canary' under rules")));
  EXPECT_THAT(problems.all()[1].message, AllOf(HasSubstr("release.yaml:3:"), HasSubstr("weights must rise")));
}

TEST(Spec, RefusesStepsThatGoNowhere) {
  EXPECT_THAT(complaint("steps: [5, 5]"), HasSubstr("weights must rise: 5 after 5"));
  EXPECT_THAT(complaint("steps: [50, 5]"), HasSubstr("weights must rise"));
  EXPECT_THAT(complaint("steps: [5, {shadow: {percent: 10}}]"), HasSubstr("before the first setWeight"));
  EXPECT_THAT(complaint("steps: [{promote: {bake: 1m}}, 5]"), HasSubstr("promote must be the last step"));
  EXPECT_THAT(complaint("steps: [{pause: {}}]"), HasSubstr("no step sets a weight"));
  EXPECT_THAT(complaint("steps: [{setWeight: 5, pause: {}}]"), HasSubstr("a step is one of"));
  EXPECT_THAT(complaint("steps: 5"), HasSubstr("must be a list"));
  EXPECT_THAT(complaint("steps: [{setWeight: 5, until: forever}]"), HasSubstr("certified or {duration: 10m}"));
}

// Bad input R2 (tests/README.md)
TEST(Spec, R2RefusesACanaryThatIsStable) {
  const auto spec = parse("service: digits\nstable: {version: 7}\ncanary: {version: 7}\n");
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error().message, AllOf(HasSubstr("rollout.yaml:3"), HasSubstr("both version '7'")));
}

// Bad input R5 (tests/README.md)
TEST(Spec, R5RefusesThresholdsThatMeanNothing) {
  for (const std::string line :
       {"guard: {errors: {max: 0}}", "guard: {errors: {max: 100%}}", "guard: {errors: {max: 1.5}}", "guard: {latency: {p99: 0}}",
        "guard: {latency: {p99: -5ms}}", "guard: {falseRollback: 0}", "guard: {falseRollback: 0.6}",
        "guard: {errors: {tolerateRatio: 0.5}}", "guard: {output: {maxDisagreement: 0}}", "certify: {confidence: 100%}",
        "certify: {margin: 0}", "certify: {maxStepDuration: 0}"})
    EXPECT_THAT(complaint(line), AllOf(HasSubstr("rollout.yaml:3:"), HasSubstr(line.substr(0, line.find(':'))))) << line;
}

}  // namespace
}  // namespace serin::rollout
