#include "runtime/steps/pipeline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace serin::steps {
namespace {

Result<std::shared_ptr<const PreStep>> make_step(const PictureSettings& settings, std::span<const TensorFacts> model) {
  return make_picture_step(settings, model);
}
Result<std::shared_ptr<const PreStep>> make_step(const TextSettings& settings, std::span<const TensorFacts> model) {
  return make_text_step(settings, model);
}
Result<std::shared_ptr<const PostStep>> make_step(const ClassesSettings& settings, std::span<const TensorFacts> model) {
  return make_classes_step(settings, model);
}
Result<std::shared_ptr<const PostStep>> make_step(const DetectionsSettings& settings, std::span<const TensorFacts> model) {
  return make_detections_step(settings, model);
}
Result<std::shared_ptr<const PostStep>> make_step(const CtcSettings& settings, std::span<const TensorFacts> model) {
  return make_ctc_step(settings, model);
}
Result<std::shared_ptr<const PostStep>> make_step(const EmbeddingSettings& settings, std::span<const TensorFacts> model) {
  return make_embedding_step(settings, model);
}

Status read_pre(const config::Node& node, const FindFile& files, StepsSettings& settings) {
  if (node.has("picture")) {
    SERIN_TRY(PictureSettings picture, read_picture_step(node));
    settings.pre.emplace_back(std::move(picture));
  } else if (node.has("text")) {
    SERIN_TRY(TextSettings text, read_text_step(node, files));
    settings.pre.emplace_back(std::move(text));
  } else {
    return node.error("must be a step before a model: it begins with 'picture' or 'text'");
  }
  return {};
}

Status read_post(const config::Node& node, const FindFile& files, StepsSettings& settings) {
  if (node.has("classes")) {
    SERIN_TRY(ClassesSettings classes, read_classes_step(node, files));
    settings.post.emplace_back(std::move(classes));
  } else if (node.has("detections")) {
    SERIN_TRY(DetectionsSettings detections, read_detections_step(node, files));
    settings.post.emplace_back(std::move(detections));
  } else if (node.has("ctc")) {
    SERIN_TRY(CtcSettings ctc, read_ctc_step(node, files));
    settings.post.emplace_back(std::move(ctc));
  } else if (node.has("embedding")) {
    SERIN_TRY(EmbeddingSettings embedding, read_embedding_step(node));
    settings.post.emplace_back(std::move(embedding));
  } else {
    return node.error("must be a step after a model: it begins with 'classes', 'detections', 'ctc' or 'embedding'");
  }
  return {};
}

/// The items of a list of steps.
Result<std::vector<config::Node>> steps_of(const config::Node& root, std::string_view key) {
  const auto list = root.find(key);
  if (!list) return std::vector<config::Node>();
  auto items = list->items();
  constexpr size_t kMostSteps = 16;
  if (!list->is_list() || items.size() > kMostSteps) return list->error(fmt::format("must be a list of at most {} steps", kMostSteps));
  return items;
}

Status check_unique(const std::vector<Pipeline::ClientTensor>& tensors, std::string_view kind) {
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t before = 0; before < i; ++before)
      if (tensors[i].facts.name == tensors[before].facts.name)
        return invalid(fmt::format("two {} would have the name '{}'", kind, tensors[i].facts.name));
  return {};
}

}  // namespace

Result<StepsSettings> read_steps(const config::Node& root, const FindFile& files) {
  StepsSettings settings{.pre = {}, .post = {}, .given = root.has("pre") || root.has("post")};
  SERIN_TRY(const auto pre, steps_of(root, "pre"));
  for (const config::Node& node : pre) {
    if (!node.is_map()) return node.error("must be a step: {picture: ...}");
    SERIN_CHECK(read_pre(node, files, settings));
  }
  SERIN_TRY(const auto post, steps_of(root, "post"));
  for (const config::Node& node : post) {
    if (!node.is_map()) return node.error("must be a step: {classes: ...}");
    SERIN_CHECK(read_post(node, files, settings));
  }
  return settings;
}

Result<std::shared_ptr<const Pipeline>> Pipeline::make(const StepsSettings& settings, std::span<const TensorFacts> inputs,
                                                       std::span<const TensorFacts> outputs) {
  auto pipeline = std::make_shared<Pipeline>();
  pipeline->model_inputs_ = inputs.size();
  std::vector<bool> filled(inputs.size()), read(outputs.size());
  for (const auto& each : settings.pre) {
    SERIN_TRY(auto step, std::visit([&](const auto& of_kind) { return make_step(of_kind, inputs); }, each));
    SERIN_CHECK(pipeline->add_pre(std::move(step), inputs, filled));
  }
  for (const auto& each : settings.post) {
    SERIN_TRY(auto step, std::visit([&](const auto& of_kind) { return make_step(of_kind, outputs); }, each));
    SERIN_CHECK(pipeline->add_post(std::move(step), outputs, read));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!filled[i]) pipeline->inputs_.push_back({inputs[i], i});
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!read[i]) pipeline->outputs_.push_back({outputs[i], i});
  SERIN_CHECK(check_unique(pipeline->inputs_, "inputs"));
  SERIN_CHECK(check_unique(pipeline->outputs_, "outputs"));
  return std::shared_ptr<const Pipeline>(std::move(pipeline));
}

Status Pipeline::add_pre(std::shared_ptr<const PreStep> step, std::span<const TensorFacts> inputs, std::vector<bool>& filled) {
  Pre& pre = pre_.emplace_back(Pre{std::move(step), {}, elements_});
  for (const TensorFacts& made : pre.step->makes()) {
    const auto index = static_cast<size_t>(find_tensor(inputs, made.name) - inputs.data());
    if (filled[index]) return invalid(fmt::format("two steps fill input '{}'", made.name));
    filled[index] = true;
    pre.fills.push_back(index);
  }
  for (const std::string& input : pre.step->inputs()) inputs_.push_back({{input, DType::kString, {}}, std::nullopt});
  elements_ += pre.step->inputs().size();
  return {};
}

/// Several steps may read one output.
Status Pipeline::add_post(std::shared_ptr<const PostStep> step, std::span<const TensorFacts> outputs, std::vector<bool>& read) {
  Post& post = post_.emplace_back(Post{std::move(step), {}});
  for (const std::string& name : post.step->reads()) {
    const auto index = static_cast<size_t>(find_tensor(outputs, name) - outputs.data());
    read[index] = true;
    post.reads.push_back(index);
  }
  for (const TensorFacts& made : post.step->makes()) outputs_.push_back({made, std::nullopt});
  quick_after_ = quick_after_ && post.step->quick();
  return {};
}

Result<Pipeline::Prepared> Pipeline::before(std::span<const std::string_view> elements, const Observe& observe) const {
  Prepared prepared;
  prepared.inputs.resize(model_inputs_);
  for (size_t i = 0; i < pre_.size(); ++i) {
    const PreStep& step = *pre_[i].step;
    Laps laps;
    auto made = step.run(elements.subspan(pre_[i].first, step.inputs().size()), prepared.facts, laps);
    if (!made) return made.error().in(fmt::format("input '{}'", step.inputs().front()));
    for (size_t tensor = 0; tensor < made->size(); ++tensor) prepared.inputs[pre_[i].fills[tensor]] = std::move((*made)[tensor]);
    const auto took = laps.took();
    for (size_t part = 0; part < took.size(); ++part) observe(step.parts()[part], took[part]);
  }
  return prepared;
}

bool Pipeline::quick_before(std::span<const std::string_view> elements) const {
  return std::ranges::all_of(pre_, [&](const Pre& pre) { return pre.step->quick(elements.subspan(pre.first, pre.step->inputs().size())); });
}

Result<std::vector<Made>> Pipeline::after(std::span<const TensorView> outputs, const RowFacts& facts, const Observe& observe) const {
  std::vector<Made> all;
  for (const Post& post : post_) {
    std::vector<TensorView> read;
    read.reserve(post.reads.size());
    for (const size_t index : post.reads) read.push_back(outputs[index]);
    Laps laps;
    SERIN_TRY(std::vector<Made> made, post.step->run(read, facts));
    laps.next();
    std::ranges::move(made, std::back_inserter(all));
    observe(post.step->part(), laps.took().front());
  }
  return all;
}

std::vector<std::string_view> Pipeline::parts() const {
  std::vector<std::string_view> parts;
  for (const Pre& pre : pre_) parts.insert(parts.end(), pre.step->parts().begin(), pre.step->parts().end());
  for (const Post& post : post_) parts.push_back(post.step->part());
  return parts;
}

std::optional<size_t> Pipeline::step_filling(size_t model_input) const {
  for (size_t i = 0; i < pre_.size(); ++i)
    if (std::ranges::find(pre_[i].fills, model_input) != pre_[i].fills.end()) return i;
  return std::nullopt;
}

std::optional<size_t> Pipeline::step_making(size_t output) const {
  for (size_t i = 0; i < post_.size(); ++i)
    if (find_tensor(post_[i].step->makes(), outputs_[output].facts.name) != nullptr) return i;
  return std::nullopt;
}

}  // namespace serin::steps
