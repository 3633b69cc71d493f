// catalogue.cc: reads devices, and refuses figures that cannot be: tables on the web mix those for sparse matrices with dense ones, which are half of them.

#include "runtime/planner/catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "runtime/base/nearest_name.h"

namespace serin::planner {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12;
constexpr double kLeastIntensity = 50, kMostIntensity = 450;  // fp16 FLOPs for each byte, of every accelerator so far
constexpr double kMostHalfOverSingle = 16.5;                  // an A100's dense tensor cores over its other ones
constexpr double kMostBytesOverHalf = 2.1;

/// A map with a figure and the place where it was read.
Result<config::Node> sourced(const config::Node& device, std::string_view key) {
  SERIN_TRY(config::Node node, device.at(key));
  const auto source = node.text("source", "");
  if (!source) return source.error();
  if (source->empty()) return node.error("has no source: say where the figure was read");
  return node;
}

Result<Device::Kind> kind_of(const config::Node& node) {
  SERIN_TRY(const config::Node word, node.at("kind"));
  SERIN_TRY(const std::string kind, word.one_of({"gpu", "npu", "cpu"}));
  return kind == "gpu" ? Device::Kind::kGpu : kind == "npu" ? Device::Kind::kNpu : Device::Kind::kCpu;
}

Status read_peaks(const config::Node& node, Device& device) {
  SERIN_CHECK(node.allow_only({"fp32", "tf32", "fp16", "fp16_sums", "bf16", "int8", "fp8", "source"}));
  for (const std::string& key : node.keys()) {
    if (key == "source") continue;
    SERIN_TRY(const config::Node value, node.at(key));
    SERIN_TRY(const double tera, value.number(1e-3, 1e5));
    device.peak[key] = tera * kTera;
  }
  if (device.peak.empty()) return node.error("has no figure");
  return {};
}

/// Sparse figures are twice the dense ones, which no ratio of a real device is.
Status check_peaks(const config::Node& node, const Device& device) {
  const auto peak = [&](const char* key) {
    const auto found = device.peak.find(key);
    return found == device.peak.end() ? 0 : found->second;
  };
  const double half = peak("fp16"), single = peak("fp32"), bytes = peak("int8"), fastest_half = std::max(half, peak("fp16_sums"));
  if (device.kind != Device::Kind::kCpu && half == 0) return node.error("has no fp16 figure, by which an accelerator is judged");
  const double intensity = half / device.bandwidth;
  if (device.kind != Device::Kind::kCpu && (intensity < kLeastIntensity || intensity > kMostIntensity))
    return node.error(
        fmt::format("fp16 {:.1f} TFLOP/s over {:.0f} GB/s is {:.0f} FLOP/B, which no accelerator has ({:.0f} to {:.0f}): "
                    "is one of them for sparse matrices, or of another card?",
                    half / kTera, device.bandwidth / kGiga, intensity, kLeastIntensity, kMostIntensity));
  if (single > 0 && half > kMostHalfOverSingle * single)
    return node.error(fmt::format("fp16 is {:.1f} times fp32; at most {} for dense matrices", half / single, kMostHalfOverSingle));
  if (fastest_half > 0 && bytes > kMostBytesOverHalf * fastest_half)
    return node.error(fmt::format("int8 is {:.1f} times fp16; at most {} for dense matrices", bytes / fastest_half, kMostBytesOverHalf));
  return {};
}

Status read_slices(const config::Node& node, Device& device) {
  const auto slices = node.find("slices");
  if (!slices) return {};
  SERIN_TRY(const std::string source, node.text("slices_source", ""));
  if (source.empty()) return node.error("slices have no slices_source");
  for (const std::string& name : slices->keys()) {
    SERIN_TRY(const config::Node pair, slices->at(name));
    const auto items = pair.items();
    if (items.size() != 2) return pair.error("must be [memory in GB, instances of a card]");
    SERIN_TRY(const double gigabytes, items[0].number(0.5, device.memory / kGiga));
    SERIN_TRY(const int64_t count, items[1].integer(1, 64));
    device.slices.push_back({name, gigabytes * kGiga, static_cast<int>(count)});
  }
  std::ranges::sort(device.slices, {}, &Slice::memory);
  return {};
}

Result<std::vector<std::string>> words_at(const config::Node& node, std::string_view key) {
  std::vector<std::string> words;
  const auto list = node.find(key);
  if (!list) return words;
  if (!list->is_list()) return list->error("must be a list of words");
  for (const config::Node& item : list->items()) {
    SERIN_TRY(std::string word, item.text());
    words.push_back(std::move(word));
  }
  return words;
}

Result<Device> read_device(const config::Node& node) {
  SERIN_CHECK(node.allow_only({"name", "kind", "memory", "bandwidth", "peak", "cores", "architecture", "runs", "why_not", "slices",
                               "slices_source", "labels", "aliases"}));
  Device device;
  SERIN_TRY(const config::Node name, node.at("name"));
  SERIN_TRY(device.name, name.text());
  SERIN_TRY(device.kind, kind_of(node));
  if (device.kind == Device::Kind::kCpu) {
    SERIN_TRY(const config::Node cores, node.at("cores"));
    SERIN_TRY(const int64_t count, cores.integer(1, 4096));
    device.cores = static_cast<int>(count);
  } else {
    SERIN_TRY(const config::Node memory, sourced(node, "memory"));
    SERIN_CHECK(memory.allow_only({"gb", "usable_gb", "source"}));
    SERIN_TRY(const config::Node gigabytes, memory.at("gb"));
    SERIN_TRY(const double all, gigabytes.number(1, 4096));
    SERIN_TRY(const double usable, memory.number("usable_gb", all / 2, all, all * 0.97));
    device.memory = all * kGiga;
    device.usable = usable * kGiga;
  }
  SERIN_TRY(const config::Node bandwidth, sourced(node, "bandwidth"));
  SERIN_CHECK(bandwidth.allow_only({"gbps", "source"}));
  SERIN_TRY(const config::Node gbps, bandwidth.at("gbps"));
  SERIN_TRY(const double rate, gbps.number(1, 1e5));
  device.bandwidth = rate * kGiga;
  SERIN_TRY(const config::Node peak, sourced(node, "peak"));
  SERIN_CHECK(read_peaks(peak, device));
  SERIN_CHECK(check_peaks(peak, device));
  SERIN_TRY(device.architecture, node.text("architecture", ""));
  SERIN_TRY(device.runs, node.boolean("runs", false));
  SERIN_TRY(device.why_not, node.text("why_not", device.runs ? "" : "the catalogue does not say that this build has kernels for it"));
  SERIN_CHECK(read_slices(node, device));
  SERIN_TRY(device.labels, words_at(node, "labels"));
  SERIN_TRY(device.aliases, words_at(node, "aliases"));
  return device;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return c == '_' ? ' ' : static_cast<char>(std::tolower(c)); });
  return result;
}

bool is_alias(const Device& device, std::string_view name) {
  return std::ranges::any_of(device.aliases, [&](const std::string& alias) { return lower(alias) == lower(name); });
}

/// For names that are near to one: each with and without its maker, and the aliases.
std::string meant(std::string_view name, const std::vector<Device>& devices) {
  std::vector<std::string> names;
  for (const Device& device : devices) {
    names.push_back(device.name);
    names.push_back(device.name.substr(device.name.find(' ') + 1));
    names.insert(names.end(), device.aliases.begin(), device.aliases.end());
  }
  return did_you_mean(name, names);
}

/// "Tesla V100-PCIE-32GB": tesla, v100, pcie, 32gb.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// Whether each word is one of the device's: "40g" is short for "40gb", and "rtx3090" for two words.
bool means(const std::vector<std::string>& wanted, const Device& device) {
  const std::vector<std::string> own = words_of(device.name);
  std::string joined;
  for (const std::string& word : own) joined += word;
  const bool each = std::ranges::all_of(wanted, [&](const std::string& word) {
    return std::ranges::any_of(own, [&](const std::string& mine) { return mine == word || (word.ends_with('g') && mine == word + "b"); });
  });
  return each || (wanted.size() == 1 && wanted.front().size() >= 6 && joined.ends_with(wanted.front()));
}

}  // namespace

Status Catalogue::add(const config::Node& root) {
  SERIN_CHECK(root.allow_only({"devices"}));
  SERIN_TRY(const config::Node list, root.at("devices"));
  if (!list.is_list()) return list.error("must be a list of devices");
  for (const config::Node& node : list.items()) {
    SERIN_TRY(Device device, read_device(node));
    const auto same = std::ranges::find(devices_, device.name, &Device::name);
    if (same != devices_.end())
      *same = std::move(device);
    else
      devices_.push_back(std::move(device));
  }
  return {};
}

Result<Catalogue> Catalogue::load(const std::string& extra) {
  Catalogue catalogue;
  SERIN_TRY(const config::Node built_in, config::Node::parse(catalogue_text(), "catalogue.yaml"));
  SERIN_CHECK(catalogue.add(built_in));
  if (extra.empty()) return catalogue;
  SERIN_TRY(const config::Node own, config::Node::load(extra));
  SERIN_CHECK(catalogue.add(own));
  return catalogue;
}

Result<const Device*> Catalogue::find(std::string_view name) const {
  const std::string wanted = lower(name);
  std::vector<const Device*> found;
  std::vector<std::string> names, among;
  for (const Device& device : devices_) {
    names.push_back(device.name);
    const std::string own = lower(device.name);
    if (own == wanted || own.ends_with(" " + wanted) || is_alias(device, name)) return &device;
    if (own.find(wanted) == std::string::npos) continue;
    found.push_back(&device);
    among.push_back(device.name);
  }
  if (found.size() == 1 && !wanted.empty()) return found.front();
  if (!wanted.empty() && found.size() > 1)
    return Error{Code::kInvalidArgument, fmt::format("device '{}' may be one of: {}", name, fmt::join(among, ", "))};
  return Error{Code::kNotFound,
               fmt::format("the catalogue has no device '{}'{}; it has: {}", name, meant(name, devices_), fmt::join(names, ", "))};
}

Result<std::vector<const Device*>> Catalogue::find_all(std::string_view name) const {
  const std::vector<std::string> wanted = words_of(name);
  std::vector<const Device*> found;
  for (const Device& device : devices_)
    if (is_alias(device, name)) return std::vector<const Device*>{&device};
  for (const Device& device : devices_)
    if (!wanted.empty() && means(wanted, device)) found.push_back(&device);
  if (!found.empty()) return found;
  SERIN_TRY(const Device* const one, find(name));
  return std::vector<const Device*>{one};
}

}  // namespace serin::planner
