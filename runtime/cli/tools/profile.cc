// profile.cc: prints the time of each step next to the least arithmetic and memory traffic that it needs (runtime/engine/plan/cost.h):
//
//       ms   share  steps  GFLOP/s    GB/s
//    10.93   76.2%     36      262    10.2  FusedMatMul matmul_f32_panels_avx512
//    ...
//
// A step far below the core's peak in GFLOP/s and the memory's in GB/s is one that loses time.

#include "runtime/cli/tools/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <cmath>

namespace serin::cli {

namespace {

constexpr size_t kSlowest = 12, kNodeName = 72;

struct Sum {
  std::string name;
  int64_t flops = 0, bytes = 0, steps = 0;
  double ms = 0;

  void add(const StepTime& time) {
    flops += time.step.flops, bytes += time.step.bytes, ms += time.ms;
    ++steps;
  }
};

/// In 10^9 a second; 0 where the clock saw no time pass.
double rate(int64_t count, double ms) { return ms > 0 ? static_cast<double>(count) / ms / 1e6 : 0; }

/// Three digits, however small.
std::string three_digits(double value) {
  const int digits = value > 0 ? 2 - static_cast<int>(std::floor(std::log10(value))) : 0;
  return fmt::format("{:.{}f}", value, std::clamp(digits, 0, 5));
}

std::string line(const Sum& sum, double all_ms) {
  const double share = all_ms > 0 ? sum.ms / all_ms * 100 : 0;
  return fmt::format("{:>9} {:>6.1f}% {:>6} {:>8} {:>7}  {}\n", three_digits(sum.ms), share, sum.steps,
                     three_digits(rate(sum.flops, sum.ms)), three_digits(rate(sum.bytes, sum.ms)), sum.name);
}

std::vector<Sum> by_kernel(const std::vector<StepTime>& times) {
  std::vector<Sum> sums;
  for (const StepTime& time : times) {
    const std::string name = time.step.op + " " + time.step.kernel;
    auto found = std::ranges::find(sums, name, &Sum::name);
    if (found == sums.end()) found = sums.insert(sums.end(), Sum{.name = name});
    found->add(time);
  }
  return sums;
}

/// A fused step has the names of all it was made of.
std::string shortened(const std::string& node) { return node.size() <= kNodeName ? node : node.substr(0, kNodeName) + "..."; }

Sum one_step(const StepTime& time) {
  const auto& outputs = time.step.outputs;
  Sum sum{.name = time.step.op + (outputs.empty() ? "" : " " + outputs[0].dtype + outputs[0].shape) + " " + shortened(time.step.node)};
  sum.add(time);
  return sum;
}

/// The slowest first; of equals those that come first.
void sort(std::vector<Sum>& sums) { std::ranges::stable_sort(sums, std::greater(), &Sum::ms); }

}  // namespace

std::string profile_table(const std::vector<StepTime>& times) {
  Sum all{.name = "in all"};
  for (const StepTime& time : times) all.add(time);
  std::vector<Sum> kernels = by_kernel(times), slowest;
  for (const StepTime& time : times) slowest.push_back(one_step(time));
  sort(kernels), sort(slowest);
  if (slowest.size() > kSlowest) slowest.resize(kSlowest);

  std::string text = "       ms   share  steps  GFLOP/s    GB/s\n";
  for (const Sum& kernel : kernels) text += line(kernel, all.ms);
  text += line(all, all.ms) + "\nthe slowest steps\n";
  for (const Sum& step : slowest) text += line(step, all.ms);
  return text;
}

boost::json::array profile_rows(const std::vector<StepTime>& times) {
  boost::json::array rows;
  for (const auto& [step, ms] : times) {
    rows.push_back(boost::json::object{
        {"node", step.node}, {"op", step.op}, {"kernel", step.kernel}, {"ms", ms}, {"flops", step.flops}, {"bytes", step.bytes}});
  }
  return rows;
}

}  // namespace serin::cli
