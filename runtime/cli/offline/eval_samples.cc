#include "runtime/cli/offline/eval_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <map>

#include "runtime/base/nearest_name.h"
#include "runtime/base/number.h"
#include "runtime/base/utf8.h"
#include "runtime/evaluation/detection.h"
#include "runtime/evaluation/regression.h"
#include "runtime/evaluation/retrieval.h"
#include "runtime/evaluation/segmentation.h"
#include "runtime/evaluation/text_errors.h"

namespace serin::cli {
namespace {

using evaluation::ClassSamples;

Error of_row(const EvalRecord& record, std::string_view what) { return invalid(fmt::format("row {}: {}", record.row, what)); }

/// Numbers in their order, before texts in theirs.
void sort_labels(std::vector<std::string>& labels) {
  std::ranges::sort(labels, [](const std::string& a, const std::string& b) {
    const auto first = parse_number<int64_t>(a), second = parse_number<int64_t>(b);
    if (first && second) return *first < *second;
    return first.has_value() != second.has_value() ? first.has_value() : a < b;
  });
  labels.erase(std::ranges::unique(labels).begin(), labels.end());
}

/// Of answers that are texts: all that occur, as truth or as an answer of any model.
Status read_named(const std::vector<EvalRecord>& records, size_t model, ClassSamples& samples) {
  for (const EvalRecord& record : records) {
    samples.classes.push_back(record.truth);
    for (const EvalAnswer& answer : record.answers) samples.classes.insert(samples.classes.end(), answer.texts.begin(), answer.texts.end());
    samples.depth = std::max(samples.depth, record.answers[model].texts.size());
  }
  sort_labels(samples.classes);
  std::map<std::string_view, int32_t> numbers;
  for (const std::string& name : samples.classes) numbers.emplace(name, static_cast<int32_t>(numbers.size()));
  bool scored = true;
  for (const EvalRecord& record : records) {
    const EvalAnswer& answer = record.answers[model];
    samples.truth.push_back(numbers.at(record.truth));
    for (size_t i = 0; i < samples.depth; ++i) samples.ranked.push_back(i < answer.texts.size() ? numbers.at(answer.texts[i]) : -1);
    scored = scored && !answer.numbers.empty();
    samples.confidence.push_back(scored ? answer.numbers.front() : 0);
  }
  if (!scored) samples.confidence.clear();
  samples.probabilities = scored && std::ranges::all_of(samples.confidence, [](float score) { return score >= 0 && score <= 1; });
  return {};
}

Status read_scored(const std::vector<EvalRecord>& records, size_t model, const SampleOptions& options, ClassSamples& samples) {
  const bool single = records.front().answers[model].numbers.size() == 1;  // the chance of the second of two classes
  const size_t classes = single ? 2 : records.front().answers[model].numbers.size();
  if (!options.labels.empty() && options.labels.size() != classes)
    return invalid(fmt::format("--labels has {} lines, the model has {} classes", options.labels.size(), classes));
  samples.classes = options.labels;
  for (size_t i = samples.classes.size(); i < classes; ++i) samples.classes.push_back(std::to_string(i));
  std::map<std::string_view, int32_t> numbers;
  for (const std::string& name : samples.classes) numbers.emplace(name, static_cast<int32_t>(numbers.size()));
  for (const EvalRecord& record : records) {
    const std::vector<float>& scores = record.answers[model].numbers;
    if (scores.size() != (single ? 1 : classes))
      return of_row(record, fmt::format("has {} scores, the first row has {}", scores.size(), classes));
    auto truth = numbers.find(record.truth);
    if (truth == numbers.end()) {
      const auto number = parse_number<int64_t>(record.truth);
      if (number && *number >= 0 && *number < static_cast<int64_t>(classes))
        truth = numbers.find(samples.classes[static_cast<size_t>(*number)]);
    }
    if (truth == numbers.end())
      return of_row(record, fmt::format("label '{}' is none of the {} classes; --labels FILE names them, one a line",
                                        utf8_prefix(record.truth, 40), classes));
    samples.truth.push_back(truth->second);
    if (single) {
      const float chance = options.softmax ? 1 / (1 + std::exp(-scores[0])) : scores[0];
      samples.scores.push_back(1 - chance);
      samples.scores.push_back(chance);
    } else {
      samples.scores.insert(samples.scores.end(), scores.begin(), scores.end());
    }
  }
  if (options.softmax && !single) evaluation::softmax_rows(samples.scores, classes);
  samples.probabilities = evaluation::are_probabilities(samples.scores, classes);
  constexpr size_t kMostRanked = 20;
  evaluation::rank_scores(samples, std::min(classes, kMostRanked));
  return {};
}

Result<EvalSamples> classifier(const std::vector<EvalRecord>& records, size_t model, const SampleOptions& options) {
  const auto samples = std::make_shared<ClassSamples>();
  const bool named = !records.front().answers[model].texts.empty();
  const Status read = named ? read_named(records, model, *samples) : read_scored(records, model, options, *samples);
  if (!read) return read.error();
  EvalSamples made{.metrics = evaluation::classification_metrics(*samples),
                   .loss = {},
                   .answer_text = {},
                   .classes = samples,
                   .ranks = nullptr,
                   .kept = samples};
  made.loss = [samples](uint32_t row) {
    if (samples->predicted(row) == samples->truth[row]) return -1.0;  // right
    return samples->confidence.empty() ? 1.0 : static_cast<double>(samples->confidence[row]);
  };
  made.answer_text = [samples](uint32_t row) {
    const std::string name = samples->predicted(row) < 0 ? "nothing" : samples->classes[static_cast<size_t>(samples->predicted(row))];
    return samples->confidence.empty() ? name : fmt::format("{} ({:.3f})", name, samples->confidence[row]);
  };
  return made;
}

Result<EvalSamples> regressor(const std::vector<EvalRecord>& records, size_t model) {
  const auto samples = std::make_shared<evaluation::NumberSamples>();
  samples->outputs = records.front().truth_numbers.size();
  for (const EvalRecord& record : records) {
    const auto& predicted = record.answers[model].numbers;
    if (record.truth_numbers.size() != samples->outputs || predicted.size() != samples->outputs)
      return of_row(record, fmt::format("has {} numbers as label and {} as answer, the label of the first row has {}",
                                        record.truth_numbers.size(), predicted.size(), samples->outputs));
    samples->truth.insert(samples->truth.end(), record.truth_numbers.begin(), record.truth_numbers.end());
    samples->predicted.insert(samples->predicted.end(), predicted.begin(), predicted.end());
  }
  EvalSamples made{.metrics = evaluation::regression_metrics(*samples),
                   .loss = {},
                   .answer_text = {},
                   .classes = nullptr,
                   .ranks = nullptr,
                   .kept = samples};
  made.loss = [samples](uint32_t row) {
    double most = 0;
    for (size_t i = row * samples->outputs; i < (row + 1) * samples->outputs; ++i)
      most = std::max(most, std::abs(samples->predicted[i] - samples->truth[i]));
    return most > 0 ? most : -1;
  };
  made.answer_text = [samples](uint32_t row) { return fmt::format("{:.6g}", samples->predicted[row * samples->outputs]); };
  return made;
}

Result<EvalSamples> searcher(const std::vector<EvalRecord>& records, size_t model) {
  constexpr size_t kMostRows = 50'000;  // each is compared with each
  if (records.size() > kMostRows)
    return invalid(fmt::format("--task embedding: {} rows, at most {} can be compared with each other", records.size(), kMostRows));
  evaluation::VectorSamples samples{.width = records.front().answers[model].numbers.size(), .vectors = {}, .truth = {}};
  for (const EvalRecord& record : records) {
    const std::vector<float>& vector = record.answers[model].numbers;
    if (vector.size() != samples.width)
      return of_row(record, fmt::format("has {} numbers, the first row has {}", vector.size(), samples.width));
    samples.vectors.insert(samples.vectors.end(), vector.begin(), vector.end());
    samples.truth.push_back(record.truth);
  }
  const auto ranks = std::make_shared<const std::vector<size_t>>(evaluation::ranks_of_first_match(samples));
  EvalSamples made{
      .metrics = evaluation::retrieval_metrics(*ranks), .loss = {}, .answer_text = {}, .classes = nullptr, .ranks = ranks, .kept = nullptr};
  made.loss = [ranks](uint32_t row) { return (*ranks)[row] > 0 ? static_cast<double>((*ranks)[row]) : -1.0; };
  made.answer_text = [ranks](uint32_t row) {
    return (*ranks)[row] == ranks->size() ? std::string("no other row has its label") : fmt::format("{} others are nearer", (*ranks)[row]);
  };
  return made;
}

EvalSamples texts(const std::vector<EvalRecord>& records, size_t model) {
  const auto samples = std::make_shared<evaluation::TextSamples>();
  for (const EvalRecord& record : records) {
    samples->truth.push_back(record.truth);
    samples->predicted.push_back(record.answers[model].texts.empty() ? "" : record.answers[model].texts.front());
  }
  EvalSamples made{
      .metrics = evaluation::text_metrics(*samples), .loss = {}, .answer_text = {}, .classes = nullptr, .ranks = nullptr, .kept = samples};
  const evaluation::Metric wrong = made.metrics[1];
  made.loss = [wrong](uint32_t row) {
    const double rate = wrong.value({&row, 1});
    return rate > 0 ? rate : -1;
  };
  made.answer_text = [samples](uint32_t row) { return samples->predicted[row]; };
  return made;
}

/// Reads COCO's lists: of annotations, or of a detector's answers.
Result<std::vector<evaluation::Box>> read_boxes(std::string_view text, std::map<std::string, int32_t>& categories) {
  boost::system::error_code failure;
  const boost::json::value value = boost::json::parse(text, failure);
  const boost::json::array* const list = failure ? nullptr : value.if_array();
  if (list == nullptr) return invalid("no JSON list of boxes");
  std::vector<evaluation::Box> boxes;
  for (const boost::json::value& item : *list) {
    const boost::json::object* const object = item.if_object();
    const boost::json::value* const sides = object == nullptr ? nullptr : object->if_contains("bbox");
    const boost::json::array* const box = sides == nullptr ? nullptr : sides->if_array();
    if (box == nullptr || box->size() != 4) return invalid("a box needs 'bbox': [x, y, width, height]");
    std::array<double, 5> numbers{};
    for (size_t i = 0; i < 5; ++i) {
      const boost::json::value* const number = i < 4 ? &(*box)[i] : object->if_contains("score");
      if (number == nullptr) continue;
      boost::system::error_code no_number;
      numbers[i] = number->to_number<double>(no_number);
      if (no_number) return invalid("a box has a side or a score that is no number");
    }
    const boost::json::value* const name = object->if_contains("category");
    const boost::json::value* const id = object->if_contains("category_id");
    if (name == nullptr && id == nullptr) return invalid("a box needs 'category' or 'category_id'");
    const std::string key =
        name != nullptr && name->is_string() ? std::string(name->as_string()) : boost::json::serialize(id != nullptr ? *id : *name);
    const int32_t category = categories.emplace(key, static_cast<int32_t>(categories.size())).first->second;
    const boost::json::value* const crowd = object->if_contains("iscrowd");
    boxes.push_back({numbers[0], numbers[1], numbers[2], numbers[3], category, numbers[4], crowd != nullptr && *crowd == 1});
  }
  return boxes;
}

Result<EvalSamples> detector(const std::vector<EvalRecord>& records, size_t model) {
  evaluation::DetectionSamples samples;
  std::map<std::string, int32_t> categories;
  for (const EvalRecord& record : records) {
    auto truth = read_boxes(record.truth, categories);
    if (!truth) return of_row(record, "label: " + truth.error().message);
    const auto& answer = record.answers[model].texts;
    auto found = read_boxes(answer.empty() ? "[]" : std::string_view(answer.front()), categories);
    if (!found) return of_row(record, "answer: " + found.error().message);
    samples.pictures.push_back(record.picture);
    samples.truth.push_back(*std::move(truth));
    samples.found.push_back(*std::move(found));
  }
  samples.categories.resize(categories.size());
  for (const auto& [name, number] : categories) samples.categories[static_cast<size_t>(number)] = name;
  EvalSamples made{.metrics = evaluation::detection_metrics(samples),
                   .loss = {},
                   .answer_text = {},
                   .classes = nullptr,
                   .ranks = nullptr,
                   .kept = nullptr};
  const evaluation::Metric precision = made.metrics[1];
  made.loss = [precision](uint32_t row) {
    const double value = precision.value({&row, 1});
    return value < 1 ? 1 - value : -1;
  };
  made.answer_text = [precision](uint32_t row) { return fmt::format("map50 {:.3f}", precision.value({&row, 1})); };
  return made;
}

/// Each model's answer has the numbers of its own classes: a record of another model may have more.
Result<EvalSamples> segmenter(const std::vector<EvalRecord>& records, size_t model, const SampleOptions& options) {
  const auto samples = std::make_shared<evaluation::PixelSamples>();
  size_t classes = options.labels.size();
  for (const EvalRecord& record : records)
    classes = std::max({classes, record.truth_numbers.size(), record.answers[model].numbers.size() / 2});
  if (!options.labels.empty() && options.labels.size() != classes)
    return invalid(fmt::format("--labels has {} lines, the pixels have {} classes", options.labels.size(), classes));
  samples->classes = options.labels;
  for (size_t i = samples->classes.size(); i < classes; ++i) samples->classes.push_back(std::to_string(i));
  const auto append = [&](std::vector<double>& to, auto first, size_t count) {
    to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(count));
    to.resize(to.size() + classes - count);
  };
  for (const EvalRecord& record : records) {
    const std::vector<float>& numbers = record.answers[model].numbers;
    const size_t half = numbers.size() / 2;
    append(samples->truth, record.truth_numbers.begin(), record.truth_numbers.size());
    append(samples->predicted, numbers.begin(), half);
    append(samples->right, numbers.begin() + static_cast<std::ptrdiff_t>(half), half);
  }
  EvalSamples made{.metrics = evaluation::segmentation_metrics(*samples),
                   .loss = {},
                   .answer_text = {},
                   .classes = nullptr,
                   .ranks = nullptr,
                   .kept = samples};
  const evaluation::Metric mean = made.metrics.front();
  made.loss = [mean](uint32_t row) {
    const double value = mean.value({&row, 1});
    return value < 1 ? 1 - value : -1;
  };
  made.answer_text = [mean](uint32_t row) { return fmt::format("miou {:.3f}", mean.value({&row, 1})); };
  return made;
}

}  // namespace

Result<EvalSamples> make_samples(const std::vector<EvalRecord>& records, size_t model, const SampleOptions& options) {
  switch (options.task) {
    case EvalTask::kClassification: return classifier(records, model, options);
    case EvalTask::kRegression: return regressor(records, model);
    case EvalTask::kText: return texts(records, model);
    case EvalTask::kDetection: return detector(records, model);
    case EvalTask::kEmbedding: return searcher(records, model);
    case EvalTask::kSegmentation: return segmenter(records, model, options);
  }
  return Error{Code::kInternal, "no such task"};
}

Result<evaluation::Metric> EvalSamples::metric(const std::string& name) const {
  const auto found = std::ranges::find(metrics, name, &evaluation::Metric::name);
  if (found != metrics.end()) return *found;
  if (classes && name.starts_with("top")) {
    const auto k = parse_number<size_t>(std::string_view(name).substr(3));
    if (k && *k >= 1 && *k <= classes->depth) return evaluation::top_k_metric(*classes, *k);
    if (k) return invalid(fmt::format("metric '{}': the answers have the best {} classes", name, classes->depth));
  }
  if (ranks && name.starts_with("recall@")) {
    const auto k = parse_number<size_t>(std::string_view(name).substr(std::string_view("recall@").size()));
    if (k && *k >= 1) return evaluation::recall_metric(*ranks, *k);
  }
  if (classes && !classes->probabilities && (name == "log_loss" || name == "ece"))
    return invalid(fmt::format("metric '{}' needs probabilities, which the scores are not: --softmax makes them", name));
  std::string names;
  std::vector<std::string_view> known;
  for (const evaluation::Metric& metric : metrics) {
    known.push_back(metric.name);
    if (metric.name.find('[') == std::string::npos) names.append(names.empty() ? "" : ", ").append(metric.name);
  }
  return invalid(fmt::format("there is no metric '{}'{}; metrics: {}{}", name, did_you_mean(name, known), names,
                             classes ? ", topK, and precision, recall, f1 of a class: f1[name]" : ""));
}

std::vector<std::string> usual_metrics(EvalTask task, const EvalSamples& samples) {
  std::vector<std::string> names;
  for (const evaluation::Metric& metric : samples.metrics)
    if (metric.name.find('[') == std::string::npos && !metric.name.ends_with("_micro")) names.push_back(metric.name);
  if (task == EvalTask::kClassification && samples.classes->depth >= 5 && samples.classes->classes.size() > 5)
    names.insert(names.begin() + 1, "top5");
  return names;
}

}  // namespace serin::cli
