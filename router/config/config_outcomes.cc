//   outcomes: [{name: conversion}, {name: basket, better: higher, range: [0, 500], confidence: 99%, margin: 2}]
//   outcomes: [{name: accuracy, labels: {output: scores, class: argmax, names: [cat, dog], requests: 100000, keep: 24h}}]

#include "router/config/config_outcomes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "runtime/net/target.h"

namespace serin::router {
namespace {

using config::Node;

constexpr size_t kMostMetrics = 16, kLongestMetric = 64, kMostClasses = 100'000;
constexpr size_t kLongestAssignment = 8000;  // outcomes/assignment.cc accepts a little more
constexpr double kLargest = 1e15;
constexpr double kLeastConfidence = 0.5, kMostConfidence = 0.999999;

/// It is a label of /metrics and a part of names in the store.
Result<std::string> read_metric_name(const Node& owner) {
  SERIN_TRY(const Node node, owner.at("name"));
  SERIN_TRY(std::string name, node.text());
  const auto odd = [](char c) {
    return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.');
  };
  if (name.empty() || name.size() > kLongestMetric || std::ranges::any_of(name, odd))
    return node.error(fmt::format("must be a name of 1 to {} letters, digits and any of _ - .", kLongestMetric));
  return name;
}

Status read_range(const Node& owner, MetricConfig& metric) {
  const auto range = owner.find("range");
  if (!range) return {};
  const auto ends = range->items();
  if (ends.size() != 2) return range->error("must be the least and the largest value, such as [0, 1]");
  SERIN_TRY(metric.least, ends[0].number(-kLargest, kLargest));
  SERIN_TRY(metric.most, ends[1].number(-kLargest, kLargest));
  if (metric.least >= metric.most) return range->error("must be the least and the largest value, in this order");
  return {};
}

Result<std::vector<std::string>> read_class_names(const Node& owner) {
  std::vector<std::string> names;
  const auto list = owner.find("names");
  if (!list) return names;
  const auto items = list->items();
  if (items.size() < 2 || items.size() > kMostClasses)
    return list->error(fmt::format("must be a list of 2 to {} names, that of class 0 first", kMostClasses));
  std::set<std::string> seen;
  for (const Node& item : items) {
    SERIN_TRY(std::string name, item.text());
    if (name.empty() || name.size() > kLongestClass) return item.error(fmt::format("must have 1 to {} bytes", kLongestClass));
    if (!seen.insert(name).second) return item.error(fmt::format("class '{}' given twice", name));
    names.push_back(std::move(name));
  }
  return names;
}

Result<LabelConfig> read_label_settings(const Node& node) {
  SERIN_CHECK(node.allow_only({"output", "class", "threshold", "names", "requests", "bytes", "keep"}));
  LabelConfig labels;
  SERIN_TRY(labels.output, node.text("output", ""));
  const auto take = node.find("class"), threshold = node.find("threshold");
  if (take && threshold) return take->error("must be left out where there is a threshold");
  if (take) {
    SERIN_TRY(const std::string word, take->one_of({"argmax", "value"}));
    if (word == "value") labels.take = LabelConfig::Class::kValue;
  }
  if (threshold) {
    labels.take = LabelConfig::Class::kThreshold;
    SERIN_TRY(labels.threshold, threshold->number(-kLargest, kLargest));
  }
  SERIN_TRY(labels.names, read_class_names(node));
  SERIN_TRY(const int64_t requests, node.integer("requests", 1, 100'000'000, static_cast<int64_t>(labels.requests)));
  SERIN_TRY(const int64_t bytes, node.integer("bytes", 1 << 20, int64_t{64} << 30, static_cast<int64_t>(labels.bytes)));
  labels.requests = static_cast<size_t>(requests);
  labels.bytes = static_cast<size_t>(bytes);
  SERIN_TRY(labels.keep, node.duration("keep", labels.keep));
  if (labels.keep < std::chrono::seconds(1) || labels.keep > std::chrono::hours(24 * 366))
    return node.find("keep")->error("must be from 1s to 8784h");
  return labels;
}

Result<MetricConfig> read_metric(const Node& node) {
  SERIN_CHECK(node.allow_only({"name", "better", "range", "confidence", "margin", "labels"}));
  MetricConfig metric;
  SERIN_TRY(metric.name, read_metric_name(node));
  if (const auto better = node.find("better")) {
    SERIN_TRY(const std::string word, better->one_of({"higher", "lower"}));
    metric.higher_is_better = word == "higher";
  }
  SERIN_CHECK(read_range(node, metric));
  SERIN_TRY(metric.confidence, node.fraction("confidence", metric.confidence));
  if (metric.confidence < kLeastConfidence || metric.confidence > kMostConfidence)
    return node.find("confidence")->error(fmt::format("must be from {} to {}", kLeastConfidence, kMostConfidence));
  if (const auto margin = node.find("margin")) {
    SERIN_TRY(metric.margin, margin->number(0, metric.most - metric.least));
    if (*metric.margin <= 0) return margin->error("must be above 0");
  }
  if (const auto labels = node.find("labels")) {
    if (!metric.higher_is_better || metric.least != 0 || metric.most != 1)
      return labels->error("need better: higher and range: [0, 1]: the outcome is the share of the rows whose class is the label");
    SERIN_TRY(metric.labels, read_label_settings(*labels));
  }
  return metric;
}

}  // namespace

Result<std::vector<MetricConfig>> read_outcomes(const Node& list, const std::vector<VersionConfig>& versions) {
  size_t bytes = 0;  // of the header of an answer that names all of them
  for (const VersionConfig& version : versions) bytes += net::escaped(version.name).size() + std::string_view("=1000000,").size();
  if (versions.size() > kMostCompared || bytes > kLongestAssignment)
    return list.error(
        fmt::format("needs a service of at most {} versions, whose names have {} bytes together", kMostCompared, kLongestAssignment));
  const auto items = list.items();
  if (items.empty() || items.size() > kMostMetrics)
    return list.error(fmt::format("must be a list of 1 to {} entries such as {{name: conversion}}", kMostMetrics));
  std::vector<MetricConfig> metrics;
  for (const Node& item : items) {
    SERIN_TRY(MetricConfig metric, read_metric(item));
    if (std::ranges::find(metrics, metric.name, &MetricConfig::name) != metrics.end())
      return item.error(fmt::format("metric '{}' given twice", metric.name));
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

}  // namespace serin::router
