// metric_state.cc: a metric as JSON, with every digit, and back.

#include <array>
#include <string>
#include <vector>

#include "router/outcomes/metric_outcomes.h"
#include "runtime/base/config.h"
#include "runtime/base/schema_json.h"

namespace serin::router {
namespace {

struct SavedVersion {
  std::string name;
  uint64_t reports = 0;
  double values = 0;
};
constexpr auto kSavedVersion =
    schema::object<SavedVersion>("SavedVersion", "", schema::field("name", &SavedVersion::name, ""),
                                 schema::field("reports", &SavedVersion::reports, ""), schema::field("values", &SavedVersion::values, ""));

struct SavedPair {
  uint64_t version = 0, than = 0, count = 0;
  double alpha = 0;
  std::vector<double> sums;  ///< in the order of all_sums()
};
constexpr auto kSavedPair =
    schema::object<SavedPair>("SavedPair", "", schema::field("version", &SavedPair::version, ""),
                              schema::field("than", &SavedPair::than, ""), schema::field("count", &SavedPair::count, ""),
                              schema::field("alpha", &SavedPair::alpha, ""), schema::field("sums", &SavedPair::sums, ""));

struct SavedFollowed {
  std::string rollout, stable, canary;
  double margin = 0;
  uint64_t since_ms = 0, count = 0;
  std::vector<double> sums;  ///< in the order of all_sums()
  std::vector<double> bets;  ///< and the mass that is not bet yet
};
constexpr auto kSavedFollowed = schema::object<SavedFollowed>(
    "SavedFollowed", "", schema::field("rollout", &SavedFollowed::rollout, ""), schema::field("stable", &SavedFollowed::stable, ""),
    schema::field("canary", &SavedFollowed::canary, ""), schema::field("since_ms", &SavedFollowed::since_ms, ""),
    schema::field("margin", &SavedFollowed::margin, ""), schema::field("count", &SavedFollowed::count, ""),
    schema::field("sums", &SavedFollowed::sums, ""), schema::field("bets", &SavedFollowed::bets, ""));

struct SavedMetric {
  double least = 0, most = 1, alpha_left = 1;
  std::vector<SavedVersion> versions;
  std::vector<SavedPair> pairs;
  std::vector<SavedFollowed> followed;
  uint64_t ids = 0;
  std::string latest_ids;
};
constexpr auto kSavedMetric = schema::object<SavedMetric>(
    "SavedMetric", "", schema::field("least", &SavedMetric::least, ""), schema::field("most", &SavedMetric::most, ""),
    schema::field("alpha_left", &SavedMetric::alpha_left, ""), schema::field<kSavedVersion>("versions", &SavedMetric::versions, ""),
    schema::field<kSavedPair>("pairs", &SavedMetric::pairs, ""), schema::field<kSavedFollowed>("followed", &SavedMetric::followed, ""),
    schema::field("ids", &SavedMetric::ids, ""), schema::field("latest_ids", &SavedMetric::latest_ids, ""));

/// Every sum in one order: for writing and for reading.
std::vector<double*> all_sums(DifferenceSums& sums) {
  std::vector<double*> all = {&sums.values, &sums.score, &sums.overlap, &sums.surplus};
  for (Spread* spread : {&sums.up, &sums.down, &sums.more, &sums.fewer})
    all.insert(all.end(), {&spread->squares, &spread->first, &spread->second, &spread->third});
  return all;
}

constexpr double kLargestSum = 1e18;
constexpr int64_t kLargestCount = int64_t{1} << 60;

Result<uint64_t> read_count(const config::Node& node, const char* key) {
  SERIN_TRY(const config::Node count, node.at(key));
  SERIN_TRY(const int64_t value, count.integer(0, kLargestCount));
  return static_cast<uint64_t>(value);
}

Result<double> read_sum(const config::Node& node, const char* key) {
  SERIN_TRY(const config::Node sum, node.at(key));
  return sum.number(-kLargestSum, kLargestSum);
}

Result<DifferenceSums> read_sums(const config::Node& pair) {
  DifferenceSums sums;
  SERIN_TRY(sums.count, read_count(pair, "count"));
  SERIN_TRY(const config::Node list, pair.at("sums"));
  const auto items = list.items();
  const auto all = all_sums(sums);
  if (items.size() != all.size()) return list.error("has another number of sums");
  for (size_t i = 0; i < all.size(); ++i) {
    SERIN_TRY(*all[i], items[i].number(-kLargestSum, kLargestSum));
  }
  return sums;
}

Result<rollout::MixtureState> read_bets(const config::Node& followed, uint64_t count) {
  rollout::MixtureState state{.count = count};
  SERIN_TRY(const config::Node list, followed.at("bets"));
  const auto items = list.items();
  if (items.size() != state.mixture.size() + 1) return list.error("has another number of bets");
  for (size_t i = 0; i < state.mixture.size(); ++i) {
    SERIN_TRY(state.mixture[i], items[i].number(0, rollout::kLargestEvidence));
  }
  SERIN_TRY(state.unused_mass, items.back().number(0, 1));
  return state;
}

}  // namespace

std::string MetricOutcomes::state() const {
  SavedMetric saved{.least = config_.least, .most = config_.most, .alpha_left = alpha_left_, .ids = ids_.total()};
  for (const Version& version : versions_) saved.versions.push_back({version.name, version.reports, version.values});
  for (const Pair& pair : pairs_) {
    DifferenceSums sums = pair.difference.sums();
    SavedPair& entry = saved.pairs.emplace_back(
        SavedPair{.version = pair.version, .than = pair.than, .count = sums.count, .alpha = pair.alpha, .sums = {}});
    for (const double* sum : all_sums(sums)) entry.sums.push_back(*sum);
  }
  for (const Followed& followed : followed_) {
    DifferenceSums sums = followed.difference.sums();
    const FollowedRollout& from = followed.rollout;
    const rollout::MixtureState& process = followed.process.state();
    SavedFollowed& entry = saved.followed.emplace_back(SavedFollowed{.rollout = from.id,
                                                                     .stable = from.stable,
                                                                     .canary = from.canary,
                                                                     .margin = from.margin,
                                                                     .since_ms = from.since_ms,
                                                                     .count = sums.count,
                                                                     .sums = {},
                                                                     .bets = {process.mixture.begin(), process.mixture.end()}});
    for (const double* sum : all_sums(sums)) entry.sums.push_back(*sum);
    entry.bets.push_back(process.unused_mass);
  }
  saved.latest_ids = ids_.chunk(ids_.full_chunks());
  return schema::to_json(kSavedMetric, saved);
}

Status MetricOutcomes::restore_followed(const config::Node& entry) {
  FollowedRollout from;
  SERIN_TRY(from.id, entry.text("rollout", ""));
  SERIN_TRY(from.stable, entry.text("stable", ""));
  SERIN_TRY(from.canary, entry.text("canary", ""));
  SERIN_TRY(from.margin, entry.number("margin", 0, unit(), 0));
  SERIN_TRY(from.since_ms, read_count(entry, "since_ms"));
  SERIN_TRY(const DifferenceSums sums, read_sums(entry));
  SERIN_TRY(const rollout::MixtureState state, read_bets(entry, sums.count));
  Followed& followed = followed_.emplace_back(
      Followed{.rollout = from, .difference = MeanDifference(sums), .process = rollout::OutcomeProcess(from.margin / unit())});
  followed.process.restore(state);
  return {};
}

Result<bool> MetricOutcomes::restore(std::string_view state) {
  SERIN_TRY(const config::Node node, config::Node::parse(state, "saved outcomes"));
  SERIN_TRY(const double least, read_sum(node, "least"));
  SERIN_TRY(const double most, read_sum(node, "most"));
  if (least != config_.least || most != config_.most) return false;
  MetricOutcomes read(config_, known_);
  SERIN_TRY(read.alpha_left_, read_sum(node, "alpha_left"));
  SERIN_TRY(const config::Node versions, node.at("versions"));
  for (const config::Node& entry : versions.items()) {
    Version version;
    SERIN_TRY(version.name, entry.text("name", ""));
    SERIN_TRY(version.reports, read_count(entry, "reports"));
    SERIN_TRY(version.values, read_sum(entry, "values"));
    read.versions_.push_back(std::move(version));
  }
  SERIN_TRY(const config::Node pairs, node.at("pairs"));
  for (const config::Node& entry : pairs.items()) {
    Pair pair;
    SERIN_TRY(pair.version, read_count(entry, "version"));
    SERIN_TRY(pair.than, read_count(entry, "than"));
    SERIN_TRY(pair.alpha, read_sum(entry, "alpha"));
    if (pair.than >= pair.version || pair.version >= read.versions_.size()) return entry.error("names a version that is not there");
    SERIN_TRY(const DifferenceSums sums, read_sums(entry));
    pair.difference = MeanDifference(sums);
    read.pairs_.push_back(pair);
  }
  if (const auto followed = node.find("followed"))  // an older router wrote none
    for (const config::Node& entry : followed->items()) SERIN_CHECK(read.restore_followed(entry));
  SERIN_TRY(const uint64_t ids, read_count(node, "ids"));
  SERIN_TRY(const std::string latest, node.text("latest_ids", ""));
  read.ids_.restore(ids);
  if (!read.ids_.restore_chunk(read.ids_.full_chunks(), latest)) return node.error("latest_ids are not those of a chunk");
  versions_ = std::move(read.versions_);
  pairs_ = std::move(read.pairs_);
  followed_ = std::move(read.followed_);
  alpha_left_ = read.alpha_left_;
  ids_ = std::move(read.ids_);
  return true;
}

}  // namespace serin::router
