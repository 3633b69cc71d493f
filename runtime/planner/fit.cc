// fit.cc: larger batches are planned until one does not fit; for more instances it is enough to multiply.

#include "runtime/planner/fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/base/number.h"
#include "runtime/planner/units.h"

namespace serin::planner {
namespace {

constexpr size_t kDeviceContext = size_t{600} << 20;  // of the driver and its libraries on a card: assumed, not measured
constexpr size_t kDriverOnHost = size_t{1} << 30;     // of the same in the process: assumed, not measured
constexpr int64_t kMostRows = 4096;
constexpr int kMostInstances = 1024;

double width(const std::string& precision) { return precision == "fp16" || precision == "bf16" ? 0.5 : precision == "int8" ? 0.25 : 1; }

size_t needed(const Answer& answer, const Room& room, const std::string& precision) {
  return room.device ? device_bytes(answer, precision) : answer.total();
}

bool batchable(const Answer& answer) {
  return std::ranges::any_of(answer.models, [](const ModelAnswer& model) { return !model.batch_symbol.empty(); });
}

Answer with_instances(Answer answer, int instances) {
  for (ModelAnswer& model : answer.models) {
    model.clients = std::max(1, model.clients / std::max(1, model.instances)) * instances;
    model.instances = instances;
  }
  return answer;
}

int most_instances(const Answer& answer, const Room& room, const std::string& precision) {
  int most = 0;
  for (int below = kMostInstances; below > 0; below /= 2)
    if (most + below <= kMostInstances && needed(with_instances(answer, most + below), room, precision) <= room.bytes) most += below;
  return most;
}

/// Powers of two: those are the sizes that run. All smaller ones are kept, too.
std::optional<int64_t> largest_batch(const PlanAgain& plan, Question question, const Room& room, const std::string& precision) {
  std::optional<int64_t> largest;
  question.batches.clear();
  for (int64_t rows = 1; rows <= kMostRows; rows *= 2) {
    question.batches.push_back(rows);
    const auto answer = plan(question);
    if (!answer || needed(*answer, room, precision) > room.bytes) break;
    largest = rows;
  }
  return largest;
}

/// Slices count: they are the smallest places.
std::string smallest_place(const Catalogue& catalogue, size_t bytes) {
  std::string name;
  double least = 0;
  const auto offer = [&](const std::string& offered, double usable) {
    if (usable < static_cast<double>(bytes) || (!name.empty() && usable >= least)) return;
    name = offered;
    least = usable;
  };
  for (const Device& device : catalogue.devices()) {
    if (!device.runs || device.kind == Device::Kind::kCpu) continue;
    offer(device.name, device.usable);
    for (const Slice& slice : device.slices) offer(device.name + " " + slice.name, slice.memory * device.usable / device.memory);
  }
  return name;
}

std::string advice_of(const Fit& fit, const Room& room, const Answer& answer) {
  std::vector<std::string> ways;
  int64_t batch = 1;
  for (const ModelAnswer& model : answer.models) batch = std::max(batch, model.max_batch);
  if (fit.largest_batch && *fit.largest_batch < batch) ways.push_back(fmt::format("reduce batch to {}", *fit.largest_batch));
  if (fit.most_instances > 0) ways.push_back(fmt::format("reduce instances to {}", fit.most_instances));
  if (room.device && !fit.smallest.empty()) ways.push_back(fmt::format("take {}", fit.smallest));
  if (!room.device) ways.push_back(fmt::format("give it {} of memory", short_bytes(fit.needs)));
  if (ways.empty()) ways.push_back("no card of the catalogue holds it");
  return fmt::format("needs {}, and {} has {}: {}", short_bytes(fit.needs), room.name, short_bytes(fit.has), fmt::join(ways, ", or "));
}

}  // namespace

size_t host_bytes(const Answer& answer) { return answer.total() + kDriverOnHost; }

size_t device_bytes(const Answer& answer, const std::string& precision) {
  double bytes = static_cast<double>(kDeviceContext);
  for (const ModelAnswer& model : answer.models) {
    size_t arena = 0;  // executors of one instance take turns in one
    for (const Bucket& bucket : model.buckets) arena = std::max(arena, bucket.arena + bucket.inputs + bucket.results);
    const double between = std::max(0.5, width(precision));
    bytes += width(precision) * static_cast<double>(model.parameter_bytes) +
             model.instances * (precision == "fp32" || precision == "tf32" ? 1 : between) * static_cast<double>(arena);
  }
  return static_cast<size_t>(bytes);
}

Result<Fit> fit(const PlanAgain& plan, const Question& question, const Answer& answer, const Room& room, const std::string& precision,
                const Catalogue& catalogue) {
  Fit fit{.needs = needed(answer, room, precision), .has = room.bytes};
  fit.fits = fit.needs <= fit.has;
  if (batchable(answer)) fit.largest_batch = largest_batch(plan, question, room, precision);
  fit.most_instances = most_instances(answer, room, precision);
  fit.smallest = smallest_place(catalogue, device_bytes(answer, precision));
  if (!fit.fits) fit.advice = advice_of(fit, room, answer);
  return fit;
}

std::string kubernetes_resources(const Answer& answer, const Device* device, const std::string& smallest) {
  constexpr size_t kMebi = size_t{1} << 20;
  int cores = 0;
  for (const ModelAnswer& model : answer.models) cores = std::max(cores, model.instances * model.threads);
  const bool on_card = device && device->kind == Device::Kind::kGpu;
  const size_t memory = ((on_card ? host_bytes(answer) : answer.total()) + kMebi - 1) / kMebi;
  std::string limits = fmt::format("    memory: {}Mi\n", memory);
  if (on_card) {
    const size_t space = smallest.rfind(' ');
    const bool slice = smallest.starts_with(device->name + " ") && smallest.find("g.", space) != std::string::npos;
    limits += slice ? fmt::format("    nvidia.com/mig-{}: 1\n", smallest.substr(space + 1)) : "    nvidia.com/gpu: 1\n";
  }
  return fmt::format("resources:\n  requests:\n    cpu: \"{}\"\n    memory: {}Mi\n  limits:\n{}", cores, memory, limits);
}

std::optional<size_t> parse_bytes(const std::string& text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12},
      {"", 1}};
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = parse_number<double>(std::string_view(text).substr(0, text.size() - unit.size()));
    if (!number || *number <= 0 || *number * factor > 1e18) return std::nullopt;
    return static_cast<size_t>(*number * factor);
  }
  return std::nullopt;
}

}  // namespace serin::planner
