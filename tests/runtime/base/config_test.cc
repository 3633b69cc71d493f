// config_test.cc: what a person who mistypes a configuration reads.

#include "runtime/base/config.h"

#include <gtest/gtest.h>

namespace serin::config {
namespace {

using namespace std::chrono_literals;

Node parsed(std::string_view text) { return Node::parse(text, "router.yaml").value(); }

TEST(Config, C1_UnknownKeyNamesLineColumnAndWhatIsAllowed) {
  const Node root = parsed("listen: x\nguard:\n  errors:\n    treshold: 1%\n");
  const auto status = root.at("guard").value().at("errors").value().allow_only({"max", "tolerateRatio"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "router.yaml:4:5: unknown key 'treshold' under guard.errors; allowed: max, tolerateRatio");
}

TEST(Config, C1_DuplicateKeyIsRefused) {
  const auto status = parsed("a: 1\na: 2\n").allow_only({"a"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "router.yaml:2:1: key 'a' given twice");
}

TEST(Config, AnArgumentHasANameAndNoLine) {
  const Node value = Node::parse_argument("{a: [1, x]}", "--set guard").value();
  EXPECT_EQ(value.at("a")->items()[1].integer(0, 9).error().message, "--set guard: a[1]: must be a whole number from 0 to 9, not 'x'");
  EXPECT_EQ(value.where(), "--set guard");
  EXPECT_EQ(Node::parse_argument("{", "--set guard").error().message.substr(0, 21), "--set guard: not YAML");
  EXPECT_EQ(parsed("a: 1\nb: {c: 2}\n").at("b")->at("c")->where(), "router.yaml:2:8");
}

TEST(Config, C1_WrongTypesSayWhatIsExpected) {
  const Node root = parsed("port: eighty\nlist: 3\nflag: yes please\nwait: 5\nshare: 120%\n");
  EXPECT_EQ(root.integer("port", 0, 65535, 0).error().message,
            "router.yaml:1:7: port: must be a whole number from 0 to 65535, not 'eighty'");
  EXPECT_EQ(root.at("list").value().allow_only({"a"}).error().message, "router.yaml:2:7: list: must be a map with the keys a");
  EXPECT_EQ(root.boolean("flag", false).error().message, "router.yaml:3:7: flag: must be true or false");
  EXPECT_EQ(root.duration("wait", 0s).error().message, "router.yaml:4:7: wait: must be a duration with a unit: 500us, 50ms, 2s, 10m or 1h");
  EXPECT_EQ(root.fraction("share", 0).error().message, "router.yaml:5:8: share: must be a fraction such as 1% or 0.01, from 0 to 1");
}

TEST(Config, C1_TabsAndBrokenYamlNameTheLine) {
  const auto broken = Node::parse("a:\n\t- b\n", "router.yaml");
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().message.starts_with("router.yaml:2:")) << broken.error().message;
}

TEST(Config, ATextInQuotesIsNoNumber) {
  const Node values = parsed(R"({a: 3, b: "3", c: '3', d: cat, e: ["3"], f: "\u0033"})");
  for (const char* quoted : {"b", "c", "f"}) EXPECT_TRUE(values.at(quoted)->is_quoted()) << quoted;
  for (const char* plain : {"a", "d", "e"}) EXPECT_FALSE(values.at(plain)->is_quoted()) << plain;
  EXPECT_TRUE(parsed(R"({"b": "\ud83d\ude00"})").at("b")->is_quoted()) << "JSON that is no YAML";
}

TEST(Config, C1_AByteOrderMarkIsAccepted) { EXPECT_EQ(parsed("\xEF\xBB\xBFname: digits\n").text("name", "").value(), "digits"); }

TEST(Config, JsonIsTakenAsJsonWritersSpellIt) {
  const Node spelled = parsed(R"({"reason" : "\ud83d\ude00 \\ud83d \u00e9", "next"
    :
    [1,
     2], "text": "a : b"})");
  EXPECT_EQ(spelled.text("reason", "").value(), "\xF0\x9F\x98\x80 \\ud83d \xC3\xA9");
  EXPECT_EQ(spelled.at("next")->items().size(), 2U);
  EXPECT_EQ(spelled.text("text", "").value(), "a : b");
  EXPECT_EQ(parsed("{\"a\"\n:\n 1, \"b\"\n: 2}").allow_only({"a"}).error().message, "router.yaml:3:5: unknown key 'b'; allowed: a");
  for (const char* no : {R"({"reason": "\ud83d"})", R"({"reason": "\ud83d\u0041"})", "{'a'\n: 1}"})
    EXPECT_FALSE(Node::parse(no, "x")) << no;
}

TEST(Config, C1_WhatIsNoTextIsRefused) {
  for (const char* no : {"reason: \xC3", "reason: \"\xED\xA0\x80\"", "\xFF\xFEr\0"}) {
    const auto refused = Node::parse(no, "request body");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "request body: is not UTF-8");
  }
}

TEST(Config, MissingFileIsNamed) {
  EXPECT_EQ(Node::load("/nowhere/router.yaml").error().message, "/nowhere/router.yaml: cannot be opened: No such file or directory");
  EXPECT_EQ(Node::load("/dev/zero").error().message, "/dev/zero: not a regular file");  // read to its end, it would never come back
}

TEST(Config, MissingKeyIsNamed) { EXPECT_EQ(parsed("a: 1").at("services").error().message, "router.yaml:1:1: key 'services' is missing"); }

TEST(Config, DefaultsStandWhereTheKeyIsAbsentOrNull) {
  const Node root = parsed("present: 7\nnothing:\n");
  EXPECT_EQ(root.integer("present", 0, 10, 3).value(), 7);
  EXPECT_EQ(root.integer("absent", 0, 10, 3).value(), 3);
  EXPECT_EQ(root.integer("nothing", 0, 10, 3).value(), 3);
}

TEST(Config, PathsLeadThroughListsAndMaps) {
  const Node root = parsed("services:\n  - name: a\n  - nam: b\n");
  const auto services = root.at("services").value().items();
  ASSERT_EQ(services.size(), 2u);
  EXPECT_EQ(services[1].allow_only({"name"}).error().message, "router.yaml:3:5: unknown key 'nam' under services[1]; allowed: name");
}

TEST(Config, APartOfADocumentIsADocument) {
  const auto whole = Node::parse("name: x\nrules:\n  steps: [5, {pause: {}}, 'off']\n  guard: {word: \"a: b\", share: 1%}\n", "x.yaml");
  ASSERT_TRUE(whole);
  const auto part = Node::parse(whole->find("rules")->yaml(), "part");
  ASSERT_TRUE(part) << whole->find("rules")->yaml();
  const auto steps = part->find("steps")->items();
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(*steps[0].integer(0, 9), 5);
  EXPECT_TRUE(steps[1].find("pause")->is_map());
  EXPECT_EQ(*steps[2].text(), "off");
  EXPECT_EQ(*part->find("guard")->text("word", ""), "a: b");
  EXPECT_DOUBLE_EQ(*part->find("guard")->fraction("share", 0), 0.01);
}

TEST(Config, OversizedDocumentsAreRefusedBeforeParsing) {
  EXPECT_EQ(Node::parse(std::string(2 << 20, 'a'), "x").error().code, Code::kTooLarge);
}

TEST(Duration, UnitsAndRoundTrip) {
  EXPECT_EQ(parse_duration("500us"), 500us);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("10m"), 10min);
  EXPECT_EQ(parse_duration("0"), 0s);
  for (const char* wrong : {"", "5", "ms", "-1s", "1 week", "1e400s", "nan s"}) EXPECT_FALSE(parse_duration(wrong)) << wrong;
  for (const auto exact :
       {std::chrono::nanoseconds(50ms), std::chrono::nanoseconds(90s), std::chrono::nanoseconds(1), std::chrono::nanoseconds(0)})
    EXPECT_EQ(parse_duration(print_duration(exact)), exact) << print_duration(exact);
}

TEST(Fraction, PercentOrPlain) {
  EXPECT_DOUBLE_EQ(*parse_fraction("1%"), 0.01);
  EXPECT_DOUBLE_EQ(*parse_fraction("0.5 %"), 0.005);
  EXPECT_DOUBLE_EQ(*parse_fraction("0.25"), 0.25);
  for (const char* wrong : {"", "%", "-1%", "101%", "2", "nan"}) EXPECT_FALSE(parse_fraction(wrong)) << wrong;
}

}  // namespace
}  // namespace serin::config
