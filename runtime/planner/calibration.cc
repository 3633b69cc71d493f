// calibration.cc: the file keeps what was measured, and each plan fits anew, which takes a millisecond; so a model can be left out to see the error.

#include "runtime/planner/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

#include "runtime/base/cache_folder.h"
#include "runtime/base/file.h"
#include "runtime/base/version.h"
#include "runtime/planner/fit_line.h"

namespace serin::planner {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

constexpr std::string_view kSchema = "serin.calibration/1";
constexpr size_t kMostBytes = size_t{64} << 20;
constexpr double kSimilar = 1.5;  // numbers of rows, of which one correction is kept

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown CPU";
}

/// Reads members of an object; `complete` is false once one was absent or of another kind.
class Members {
 public:
  explicit Members(const json::value& value) : object_(value.if_object()), complete_(object_ != nullptr) {}

  std::string text(const char* key) {
    const json::value* const found = member(key);
    complete_ = complete_ && found && found->is_string();
    return complete_ ? std::string(found->get_string()) : "";
  }
  /// From `least` to `most`.
  double number(const char* key, double least = 0, double most = std::numeric_limits<double>::max()) {
    const json::value* const found = member(key);
    const double value = found && found->is_number() ? found->to_number<double>() : -1;
    complete_ = complete_ && value >= least && value <= most;
    return complete_ ? value : least;
  }
  bool complete() const { return complete_; }

 private:
  const json::value* member(const char* key) const { return object_ ? object_->if_contains(key) : nullptr; }

  const json::object* object_;
  bool complete_;
};

constexpr double kLeastSeconds = 1e-12, kMostThreads = 4096;

std::optional<Sample> sample_of(const json::value& value) {
  Members of(value);
  Sample sample{.model = of.text("model"),
                .kernel = of.text("kernel"),
                .threads = static_cast<int>(of.number("threads", 1, kMostThreads)),
                .size = {.flops = of.number("flops"),
                         .read = of.number("read"),
                         .constants = of.number("constants"),
                         .written = of.number("written")},
                .ns = of.number("ns", 1e9 * kLeastSeconds)};
  return of.complete() ? std::optional(std::move(sample)) : std::nullopt;
}

std::optional<Correction> correction_of(const json::value& value) {
  Members of(value);
  Correction correction{.digest = of.text("digest"),
                        .model = of.text("model"),
                        .threads = static_cast<int>(of.number("threads", 1, kMostThreads)),
                        .rows = of.number("rows", kLeastSeconds),
                        .planned = of.number("planned", kLeastSeconds),
                        .measured = of.number("measured", kLeastSeconds),
                        .runs = of.number("runs"),
                        .source = of.text("source")};
  return of.complete() ? std::optional(std::move(correction)) : std::nullopt;
}

/// The members of an array, each by `read`; nothing: `failed` is the index of the first that is none.
template <class T>
std::optional<std::vector<T>> list_of(const json::array& array, std::optional<T> (*read)(const json::value&), size_t& failed) {
  std::vector<T> list;
  for (const json::value& each : array) {
    auto one = read(each);
    failed = list.size();
    if (!one) return std::nullopt;
    list.push_back(*std::move(one));
  }
  return list;
}

/// Curves by kernel, and one for all of them as "".
using Curves = std::map<std::string, TimeCurve>;

Curves curves_of(const std::vector<Sample>& samples, int threads, std::string_view without) {
  std::map<std::string, std::vector<Point>> points;
  for (const Sample& sample : samples) {
    if (sample.threads != threads || (!without.empty() && sample.model == without)) continue;
    points[sample.kernel].push_back({sample.size, sample.ns});
    points[""].push_back({sample.size, sample.ns});
  }
  Curves curves;
  for (auto& [kernel, of_kernel] : points) curves.emplace(kernel, TimeCurve(std::move(of_kernel)));
  return curves;
}

Prediction predict(const Curves& curves, const engine::StepInfo& step) {
  const auto own = curves.find(step.kernel);
  const TimeCurve& curve = own != curves.end() ? own->second : curves.at("");
  return {curve.ns(size_of(step)) * 1e-9, own != curves.end()};
}

}  // namespace

Result<Calibration> Calibration::read(const std::string& path, const std::string& machine) {
  SERIN_TRY(const std::string text, read_file(path, kMostBytes));
  boost::system::error_code failure;
  const json::value root = json::parse(text, failure);
  const auto refuse = [&](std::string_view why) { return invalid(fmt::format("{}: {}", path, why)); };
  if (failure || !root.is_object()) return refuse("is no JSON object");
  const json::object& object = root.get_object();
  const auto is = [&](const char* key, std::string_view value) {
    const json::value* const found = object.if_contains(key);
    return found && found->is_string() && std::string_view(found->get_string()) == value;
  };
  if (!is("schema", kSchema)) return refuse(fmt::format("is no calibration of schema {}", kSchema));
  if (!is("machine", machine)) return refuse(fmt::format("is of another CPU or build than '{}': calibrate again", machine));
  const auto array = [&](const char* key) {
    const json::value* const found = object.if_contains(key);
    return found ? found->if_array() : nullptr;
  };
  const json::array* const samples = array("samples");
  if (!samples) return refuse("has no samples");
  Calibration calibration;
  size_t failed = 0;
  auto read_samples = list_of(*samples, sample_of, failed);
  if (!read_samples) return refuse(fmt::format("samples[{}] is no sample", failed));
  calibration.samples_ = *std::move(read_samples);
  if (!object.contains("corrections")) return calibration;  // of an earlier build
  const json::array* const corrections = array("corrections");
  if (!corrections) return refuse("corrections is no array");
  auto read_corrections = list_of(*corrections, correction_of, failed);
  if (!read_corrections) return refuse(fmt::format("corrections[{}] is no correction", failed));
  calibration.corrections_ = *std::move(read_corrections);
  return calibration;
}

Status Calibration::write(const std::string& path, const std::string& machine) const {
  json::array samples;
  for (const Sample& sample : samples_)
    samples.push_back({{"model", sample.model},
                       {"kernel", sample.kernel},
                       {"threads", sample.threads},
                       {"flops", sample.size.flops},
                       {"read", sample.size.read},
                       {"constants", sample.size.constants},
                       {"written", sample.size.written},
                       {"ns", sample.ns}});
  json::array corrections;
  for (const Correction& correction : corrections_)
    corrections.push_back({{"digest", correction.digest},
                           {"model", correction.model},
                           {"threads", correction.threads},
                           {"rows", correction.rows},
                           {"planned", correction.planned},
                           {"measured", correction.measured},
                           {"runs", correction.runs},
                           {"source", correction.source}});
  std::error_code error;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) fs::create_directories(folder, error);
  const json::object root = {
      {"schema", kSchema}, {"machine", machine}, {"samples", std::move(samples)}, {"corrections", std::move(corrections)}};
  return write_file_atomically(path, json::serialize(root));
}

void Calibration::add(const std::string& model, std::vector<Sample> samples) {
  if (samples.empty()) return;
  const auto is_replaced = [&](const auto& each) { return each.model == model && each.threads == samples.front().threads; };
  std::erase_if(samples_, is_replaced);
  std::erase_if(corrections_, is_replaced);
  for (Sample& sample : samples) samples_.push_back(std::move(sample));
}

void Calibration::keep(Correction correction) {
  std::erase_if(corrections_, [&](const Correction& other) {
    const double ratio = other.rows / correction.rows;
    return other.digest == correction.digest && other.threads == correction.threads && ratio < kSimilar && ratio > 1 / kSimilar;
  });
  corrections_.push_back(std::move(correction));
}

void Calibration::fill(ModelAnswer& answer, std::string_view without) const {
  const Curves curves = curves_of(samples_, answer.threads, without);
  if (curves.empty()) return;
  for (Bucket& bucket : answer.buckets) {
    double sum = 0, known = 0;
    for (const engine::StepInfo& step : engine::steps(*bucket.plan)) {
      const Prediction time = predict(curves, step);
      sum += time.seconds;
      known += time.known ? time.seconds : 0;
    }
    bucket.seconds = sum;
    bucket.known_share = sum > 0 ? known / sum : 1;
  }
}

void Calibration::correct(ModelAnswer& answer, std::string_view digest) const {
  for (Bucket& bucket : answer.buckets) {
    const auto distance = [&](const Correction& each) {
      const bool other = each.digest != digest || each.threads != answer.threads;
      return other ? std::numeric_limits<double>::infinity() : std::abs(std::log(each.rows / static_cast<double>(bucket.rows)));
    };
    const auto best = std::ranges::min_element(corrections_, {}, distance);
    if (!bucket.seconds || best == corrections_.end() || std::isinf(distance(*best))) continue;
    bucket.correction = best->factor();
    *bucket.seconds *= bucket.correction;
    answer.corrected_by = best->source;
  }
}

StepSize size_of(const engine::StepInfo& step) {
  StepSize size{.flops = static_cast<double>(step.flops)};
  for (const auto& operand : step.inputs)
    (operand.place == "constant" || operand.place == "nowhere" ? size.constants : size.read) += static_cast<double>(operand.bytes);
  for (const auto& operand : step.outputs) size.written += static_cast<double>(operand.bytes);
  return size;
}

std::string machine_name(const Machine& machine) { return fmt::format("{}, {}, serin {}", cpu_name(), machine.note, kVersion); }

std::string calibration_path() {
  const std::string folder = cache_folder();
  return folder.empty() ? "" : folder + "/plan.json";
}

}  // namespace serin::planner
