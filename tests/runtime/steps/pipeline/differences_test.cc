// Each key of a step, by its own: settings that differ in it are reported with that key and no other.
#include "runtime/steps/pipeline/differences.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace serin::steps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Differences : public testing::Test {
 protected:
  Differences() {
    for (const char* const version : {"stable", "canary"}) std::filesystem::create_directories(folder_ / version);
    write("stable/labels.txt", "ant\nbee\n");
    write("canary/labels.txt", "ant\nwasp\n");
    write("canary/same.txt", "ant\nbee\n");
    write("stable/tokenizer.json", "{}");
    write("canary/tokenizer.json", "{ }");
    write("canary/same.json", "{}");
  }
  ~Differences() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& contents) { std::ofstream(folder_ / name) << contents; }

  StepsSettings read(const std::string& version, const std::string& yaml) {
    const auto root = config::Node::parse(yaml, "serin.yaml");
    EXPECT_TRUE(root) << root.error().message;
    auto settings = read_steps(*root, [&](const std::string& name) -> Result<std::string> { return (folder_ / version / name).string(); });
    EXPECT_TRUE(settings) << yaml << ": " << settings.error().message;
    return *std::move(settings);
  }

  /// As lines.
  std::vector<std::string> find(const std::string& stable, const std::string& canary) {
    std::vector<std::string> lines;
    for (const StepDifference& found : find_differences(read("stable", stable), read("canary", canary)))
      lines.push_back(fmt::format("{}: {}", found.step, found.what));
    return lines;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("differences_{}_{}", getpid(), static_cast<const void*>(this));
};

struct Key {
  std::string list, step, key, one, other;  ///< `other` replaces `one`, which may be empty
};

TEST_F(Differences, NamesTheKeyThatDiffers) {
  const std::string picture = "picture: i", classes = "classes: s", boxes = "detections: b", embedding = "embedding: h";
  const std::vector<Key> keys = {
      {"pre", picture, "to", "", "to: x"},
      {"pre", picture, "shape_to", "", "shape_to: x"},
      {"pre", picture, "scale_to", "", "scale_to: x"},
      {"pre", picture, "color", "color: bgr", "color: rgb"},
      {"pre", picture, "orient", "", "orient: false"},
      {"pre", picture, "max_pixels", "", "max_pixels: 9"},
      {"pre", picture, "resize", "resize: 9", "resize: {to: 9, rule: cv2.area}"},
      {"pre", picture, "crop", "crop: 9", "crop: 8"},
      {"pre", picture, "pad", "pad: {to: 9}", "pad: {to: 9, value: 1}"},
      {"pre", picture, "scale", "", "scale: 1"},
      {"pre", picture, "mean", "mean: 0.5", "mean: 0.4"},
      {"pre", picture, "std", "std: 0.5", "std: 0.4"},
      {"pre", picture, "layout", "", "layout: nhwc"},
      {"pre", "text: t", "tokenizer", "tokenizer: tokenizer.json", "tokenizer: tokenizer.json"},
      {"pre", "text: t, tokenizer: same.json", "pair", "", "pair: u"},
      {"pre", "text: t, tokenizer: same.json", "lower_case", "", "lower_case: false"},
      {"pre", "text: t, tokenizer: same.json", "style", "", "style: t5"},
      {"pre", "text: t, tokenizer: same.json", "max_bytes", "", "max_bytes: 9"},
      {"pre", "text: t, tokenizer: same.json", "max_length", "max_length: 8", "max_length: 9"},
      {"pre", "text: t, tokenizer: same.json", "truncate", "", "truncate: false"},
      {"pre", "text: t, tokenizer: same.json", "pad_to", "", "pad_to: [4, 8]"},
      {"pre", "text: t, tokenizer: same.json", "to", "", "to: {ids: x}"},
      {"post", classes, "softmax", "", "softmax: true"},
      {"post", classes, "sigmoid", "", "sigmoid: true"},
      {"post", classes, "top", "", "top: 2"},
      {"post", "classes: s, label: l", "labels", "labels: labels.txt", "labels: labels.txt"},
      {"post", classes, "label", "", "label: name"},
      {"post", classes, "score", "", "score: p"},
      {"post", boxes, "form", "", "form: suppressed"},
      {"post", boxes, "form", "", "form: corners"},
      {"post", boxes, "transposed", "", "transposed: true"},
      {"post", boxes, "objectness", "", "objectness: true"},
      {"post", boxes, "activation", "", "activation: sigmoid"},
      {"post", boxes, "background", "", "background: true"},
      {"post", boxes, "every_class", "", "every_class: true"},
      {"post", boxes, "relative", "", "relative: true"},
      {"post", boxes, "in_source", "", "in_source: true"},
      {"post", boxes, "score", "", "score: 0.5"},
      {"post", boxes, "iou", "", "iou: 0.5"},
      {"post", boxes, "across_labels", "", "across_labels: true"},
      {"post", boxes, "most", "", "most: 9"},
      {"post", boxes, "labels", "labels: labels.txt", "labels: labels.txt"},
      {"post", boxes, "name", "", "name: found"},
      {"post", "ctc: p", "dictionary", "dictionary: labels.txt", "dictionary: labels.txt"},
      {"post", "ctc: p, dictionary: same.txt", "text", "", "text: line"},
      {"post", "ctc: p, dictionary: same.txt", "score", "", "score: q"},
      {"post", embedding, "pooling", "pooling: mean", "pooling: max"},
      {"post", embedding, "normalize", "", "normalize: true"},
      {"post", embedding, "name", "", "name: vector"},
  };
  for (const std::string name : {"same.json", "same.txt"})  // one version's is named otherwise
    std::filesystem::copy(folder_ / "canary" / name, folder_ / "stable" / name);
  const auto yaml = [](const Key& key, const std::string& value) {
    return fmt::format("{}: [{{{}{}{}}}]", key.list, key.step, value.empty() ? "" : ", ", value);
  };
  for (const Key& key : keys) {
    const std::string title = key.step.substr(0, key.step.find(','));
    EXPECT_THAT(find(yaml(key, key.one), yaml(key, key.other)),
                ElementsAre(fmt::format("step 1 of {} ({}): '{}'", key.list, title, key.key)))
        << key.other;
  }
}

TEST_F(Differences, EqualContentsAreEqual) {
  EXPECT_THAT(
      find("pre: [{text: t, tokenizer: tokenizer.json}]\npost: [{classes: s, labels: labels.txt}, {ctc: p, dictionary: labels.txt}]",
           "pre: [{text: t, tokenizer: same.json}]\npost: [{classes: s, labels: same.txt}, {ctc: p, dictionary: same.txt}]"),
      IsEmpty());
}

TEST_F(Differences, AConfigurationNextToATokenizerBelongsToIt) {
  write("canary/tokenizer_config.json", "{}");
  EXPECT_THAT(find("pre: [{text: t, tokenizer: tokenizer.json}]", "pre: [{text: t, tokenizer: same.json}]"),
              ElementsAre("step 1 of pre (text: t): 'tokenizer'"));
}

TEST_F(Differences, StepsThatOneVersionHasAreNamedInTheirOrder) {
  EXPECT_THAT(
      find("pre: [{picture: i, to: x}]\npost: [{classes: s}, {embedding: h}]",
           "pre: [{text: t, tokenizer: same.json}, {picture: j, to: x}]\npost: [{classes: r, top: 2}]"),
      ElementsAre("step 1 of pre (picture: i): the candidate has 'text: t' there", "step 2 of pre (picture: j): only the candidate has it",
                  "step 1 of post (classes: s): 'classes', 'top'", "step 2 of post (embedding: h): only the reference has it"));
  EXPECT_THAT(find("", ""), IsEmpty());
}

}  // namespace
}  // namespace serin::steps
