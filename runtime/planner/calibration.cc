// calibration.cc: the file keeps what was measured, and each plan fits anew, which takes a millisecond; so a model can be left out to see the error.

#include "runtime/planner/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
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

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown CPU";
}

std::optional<Sample> sample_of(const json::value& value) {
  const auto* const object = value.if_object();
  if (!object) return std::nullopt;
  Sample sample;
  const auto text = [&](const char* key, std::string& to) {
    const json::value* const found = object->if_contains(key);
    if (found && found->is_string()) to = std::string(found->get_string());
    return found && found->is_string();
  };
  const auto number = [&](const char* key, double& to) {
    const json::value* const found = object->if_contains(key);
    if (!found || !found->is_number()) return false;
    to = found->to_number<double>();
    return to >= 0;
  };
  double threads = 0;
  if (!text("model", sample.model) || !text("kernel", sample.kernel) || !number("flops", sample.size.flops) ||
      !number("read", sample.size.read) || !number("constants", sample.size.constants) || !number("written", sample.size.written) ||
      !number("ns", sample.ns) || !number("threads", threads) || sample.ns <= 0 || threads < 1 || threads > 4096)
    return std::nullopt;
  sample.threads = static_cast<int>(threads);
  return sample;
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
  const json::value* const list = object.if_contains("samples");
  if (!list || !list->is_array()) return refuse("has no samples");
  Calibration calibration;
  for (const json::value& each : list->get_array()) {
    auto sample = sample_of(each);
    if (!sample) return refuse(fmt::format("samples[{}] is no sample", calibration.samples_.size()));
    calibration.samples_.push_back(*std::move(sample));
  }
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
  std::error_code error;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) fs::create_directories(folder, error);
  return write_file_atomically(path,
                               json::serialize(json::object{{"schema", kSchema}, {"machine", machine}, {"samples", std::move(samples)}}));
}

void Calibration::add(const std::string& model, std::vector<Sample> samples) {
  std::erase_if(samples_, [&](const Sample& sample) {
    return sample.model == model && !samples.empty() && sample.threads == samples.front().threads;
  });
  for (Sample& sample : samples) samples_.push_back(std::move(sample));
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
