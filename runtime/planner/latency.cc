// latency.cc: the usual efficiencies are those that vendors' libraries reach on large and on small operators.

#include "runtime/planner/latency.h"

#include <algorithm>

#include "runtime/engine/describe.h"

namespace serin::planner {
namespace {

struct Efficiency {
  double compute, memory, launch;
};
constexpr Efficiency kBestDevice{0.75, 0.9, 2e-6}, kWorstDevice{0.12, 0.35, 10e-6};
constexpr Efficiency kBestCpu{0.9, 0.95, 0}, kWorstCpu{0.15, 0.25, 3e-6};
constexpr double kCoreShare = 4;  // cores that fill the memory's bandwidth: a fourth of them

double seconds(const Bucket& bucket, const Roof& roof, double width, const Efficiency& efficiency) {
  double sum = 0;
  for (const engine::StepInfo& step : engine::steps(*bucket.plan))
    sum += std::max(static_cast<double>(step.flops) / (roof.flops * efficiency.compute),
                    width * static_cast<double>(step.bytes) / (roof.bandwidth * efficiency.memory)) +
           efficiency.launch;
  return sum;
}

}  // namespace

Roof roof_of(const Device& device, const std::string& precision, int threads) {
  const auto peak = device.peak.find(precision);
  if (peak == device.peak.end()) return {};
  if (device.kind != Device::Kind::kCpu) return {peak->second, device.bandwidth};
  const double share = std::min(1.0, static_cast<double>(threads) / device.cores);
  return {peak->second * share, device.bandwidth * std::min(1.0, share * kCoreShare)};
}

Latency predict(const Bucket& bucket, const Device& device, const std::string& precision, int threads) {
  const Roof roof = roof_of(device, precision, threads);
  if (roof.flops == 0) return {};
  const bool cpu = device.kind == Device::Kind::kCpu;
  const double width = cpu || precision == "fp32" || precision == "tf32" ? 1 : 0.5;
  return {seconds(bucket, roof, width, cpu ? kBestCpu : kBestDevice), seconds(bucket, roof, width, cpu ? kWorstCpu : kWorstDevice), false};
}

}  // namespace serin::planner
