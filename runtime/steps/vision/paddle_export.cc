// paddle_export.cc: PaddleOCR, PaddleX and PaddleClas write PreProcess.transform_ops, a list of maps with one key each, the operation's name.
// PaddleDetection writes Preprocess, a list of maps in which `type` is the name.

#include "runtime/steps/vision/paddle_export.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/steps/vision/paddle_operations.h"
#include "runtime/steps/vision/paddle_values.h"

namespace serin::steps {
namespace {

using config::Node;

constexpr size_t kMostOperations = 100;

Result<std::vector<Node>> operations_of(const Node& list) {
  if (!list.is_list()) return list.error("must be a list of operations");
  std::vector<Node> items = list.items();
  if (items.size() > kMostOperations) return list.error(fmt::format("has {} operations; {} are the limit", items.size(), kMostOperations));
  return items;
}

Status read_transform_ops(const Node& list, PaddleExport& model) {
  SERIN_TRY(const std::vector<Node> items, operations_of(list));
  for (const Node& item : items) {
    const std::vector<std::string> names = item.keys();
    if (names.size() != 1) return item.error("must be a map with one key, the name of an operation");
    auto settings = item.find(names[0]);
    if (!settings) {  // `ToCHWImage: null`: no settings, and a place for messages
      SERIN_TRY(settings, Node::parse("", item.error(names[0]).message));
    }
    SERIN_CHECK(read_paddle_operation(names[0], *settings, model));
  }
  return {};
}

Status read_preprocess(const Node& list, PaddleExport& model) {
  SERIN_TRY(const std::vector<Node> items, operations_of(list));
  for (const Node& item : items) {
    SERIN_TRY(const Node type, item.at("type"));
    SERIN_TRY(const std::string name, type.text());
    SERIN_CHECK(read_detection_operation(name, item, model));
  }
  return {};
}

Result<AnswerStep> read_text_boxes(const Node& settings) {
  SERIN_CHECK(
      settings.allow_only({"name", "thresh", "box_thresh", "max_candidates", "unclip_ratio", "use_dilation", "score_mode", "box_type"}));
  TextBoxOptions options;
  SERIN_TRY(options.threshold, share_of(settings, "thresh", 0.3));
  SERIN_TRY(options.box_threshold, share_of(settings, "box_thresh", 0.7));
  SERIN_TRY(options.most, count_of(settings, "max_candidates", 1000));
  SERIN_TRY(const double unclip, settings.number("unclip_ratio", 0, 100, 2));
  options.unclip_ratio = static_cast<float>(unclip);
  SERIN_TRY(options.dilate, settings.boolean("use_dilation", false));
  if (const auto mode = settings.find("score_mode")) {
    SERIN_TRY(const std::string word, mode->one_of({"fast", "slow"}));
    options.slow_score = word == "slow";
  }
  if (const auto type = settings.find("box_type")) SERIN_CHECK(type->one_of({"quad"}));
  return AnswerStep(options);
}

Result<AnswerStep> read_characters(const Node& settings) {
  SERIN_CHECK(settings.allow_only({"name", "character_dict", "use_space_char", "character_dict_path"}));
  ReadTextStep step;
  SERIN_TRY(step.with_space, settings.boolean("use_space_char", true));
  if (const auto list = settings.find("character_dict")) {
    SERIN_TRY(step.characters, texts_of(*list));
  }
  return AnswerStep(std::move(step));
}

Result<AnswerStep> read_rank(const Node& settings) {
  SERIN_CHECK(settings.allow_only({"topk", "label_list", "class_id_map_file", "delimiter"}));
  RankStep step;
  SERIN_TRY(step.most, count_of(settings, "topk", step.most));
  if (const auto list = settings.find("label_list")) {
    SERIN_TRY(step.labels, texts_of(*list));
  }
  return AnswerStep(std::move(step));
}

/// `name: DBPostProcess` next to its settings (PaddleOCR), or `Topk:` with its settings below (PaddleClas).
Result<AnswerStep> read_postprocess(const Node& post) {
  if (const auto named = post.find("name")) {
    SERIN_TRY(const std::string name, named->text());
    if (name == "DBPostProcess") return read_text_boxes(post);
    if (name == "CTCLabelDecode") return read_characters(post);
    return named->error(fmt::format("'{}' is not supported; supported are DBPostProcess, CTCLabelDecode, Topk", name));
  }
  AnswerStep found;
  for (const std::string& key : post.keys()) {
    if (key == "main_indicator") continue;
    if (key != "Topk") return post.error(fmt::format("'{}' is not supported; supported are DBPostProcess, CTCLabelDecode, Topk", key));
    const auto settings = post.find(key);
    if (!settings) {
      found = RankStep();
      continue;
    }
    SERIN_TRY(found, read_rank(*settings));
  }
  return found;
}

}  // namespace

Result<PaddleExport> read_paddle_export(const Node& file) {
  PaddleExport model;
  if (const auto global = file.find("Global")) {
    SERIN_TRY(model.name, global->text("model_name", ""));
  }
  if (const auto list = file.find("Preprocess")) {
    SERIN_CHECK(read_preprocess(*list, model));
    SERIN_TRY(model.after, read_detection(file));
    return model;
  }
  const auto pre = file.find("PreProcess");
  if (!pre) return file.error("has neither PreProcess (PaddleOCR, PaddleX, PaddleClas) nor Preprocess (PaddleDetection)");
  SERIN_TRY(const Node list, pre->at("transform_ops"));
  SERIN_CHECK(read_transform_ops(list, model));
  if (const auto post = file.find("PostProcess")) {
    SERIN_TRY(model.after, read_postprocess(*post));
  }
  return model;
}

Result<PaddleExport> load_paddle_export(const std::string& path) {
  SERIN_TRY(const Node file, Node::load(path));
  return read_paddle_export(file);
}

}  // namespace serin::steps
