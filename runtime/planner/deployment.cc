// deployment.cc: writes what deploy/kubernetes has, with the numbers of an offer. Probes, ports and the security context are those of the base there.

#include "runtime/planner/deployment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "runtime/base/version.h"
#include "runtime/planner/manifest.h"
#include "runtime/planner/places.h"

namespace serin::planner {
namespace {

namespace fs = std::filesystem;

/// Where the model is in the container, and what is bound there.
struct Mount {
  std::string host, inside;
  std::vector<std::string> arguments;  ///< of `serin serve`
};

/// A file is bound with its folder, where its weights may lie, too.
Mount mount_of(const Deployment& deployment) {
  std::error_code error;
  const fs::path place = fs::absolute(deployment.place, error).lexically_normal();
  if (fs::is_regular_file(place, error)) {
    const std::string inside = "/models/" + deployment.name;
    return {place.parent_path().string(), inside, {"--name", deployment.name, inside + "/" + place.filename().string()}};
  }
  if (is_one_model(place.string())) {
    const std::string inside = "/models/" + deployment.name;
    return {place.string(), inside, {"--name", deployment.name, inside}};
  }
  return {place.string(), "/models", {"--models", "/models"}};
}

std::vector<std::string> serve_arguments(const Offer& offer, const Mount& mount) {
  std::vector<std::string> all = {"serve"};
  all.insert(all.end(), mount.arguments.begin(), mount.arguments.end());
  const auto add = [&](const char* flag, const std::string& value) { all.insert(all.end(), {flag, value}); };
  add("--address", "0.0.0.0");
  add("--max-batch", std::to_string(offer.batch));
  add("--instances", std::to_string(offer.instances));
  add("--precision", offer.precision);
  if (offer.on_card()) add("--device", "cuda");
  return all;
}

std::string image_of(const Deployment& deployment, const Offer& offer) {
  return deployment.image.empty() ? usual_image(offer) : deployment.image;
}

std::string quoted_for_shell(const std::string& word) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("-_./:=,@%+").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// What needs no folder: the numbers.
Manifest manifest_of(const Deployment& deployment, const Offers& offers) {
  const Offer& offer = *offers.chosen();
  Manifest manifest;
  manifest.name = object_name(deployment.name);
  manifest.image = image_of(deployment, offer);
  manifest.cpu = std::to_string(offer.cores());
  manifest.memory = fmt::format("{}Mi", limit_mebibytes(offer, offers.memory_threshold));
  manifest.accelerator = accelerator_of(offer);
  manifest.replicas = offer.replicas;
  if (offers.demand.rps > 0)
    manifest.autoscaler = {.least = offer.replicas,
                           .most = std::max(offer.replicas, deployment.most_replicas.value_or(2 * offer.replicas)),
                           .in_flight = static_cast<int64_t>(offer.in_flight)};
  return manifest;
}

}  // namespace

std::string usual_image(const Offer& offer) { return offer.on_card() ? std::string("serin:cuda") : fmt::format("serin:{}", kVersion); }

size_t limit_mebibytes(const Offer& offer, double memory_threshold) {
  constexpr double kMebi = 1048576;
  return static_cast<size_t>(std::ceil(static_cast<double>(offer.process) / memory_threshold / kMebi));
}

std::string accelerator_of(const Offer& offer) {
  if (!offer.on_card()) return {};
  return offer.slice.empty() ? "nvidia.com/gpu" : "nvidia.com/mig-" + offer.slice;
}

Status check_image(const std::string& image) {
  const auto blank = [](unsigned char c) { return std::isspace(c) != 0 || std::iscntrl(c) != 0; };
  if (image.empty() || std::ranges::any_of(image, blank)) return invalid(fmt::format("image '{}' is no name of an image", image));
  const size_t name = image.rfind('/') == std::string::npos ? 0 : image.rfind('/') + 1;
  if (const size_t at = image.find('@', name); at != std::string::npos) {
    const std::string_view digest = std::string_view(image).substr(at + 1);
    const auto hex = [](unsigned char c) { return std::isdigit(c) != 0 || (c >= 'a' && c <= 'f'); };
    constexpr std::string_view kKind = "sha256:";
    if (digest.starts_with(kKind) && digest.size() == kKind.size() + 64 && std::ranges::all_of(digest.substr(kKind.size()), hex)) return {};
    return invalid(fmt::format("image '{}': a digest is sha256: and 64 digits", image));
  }
  const size_t colon = image.find(':', name);
  if (colon == std::string::npos || colon + 1 == image.size())
    return invalid(fmt::format("image '{}' has no tag: name a version or a digest, so that every pod starts the same program", image));
  if (image.substr(colon + 1) == "latest")
    return invalid(fmt::format("image '{}': latest is another program tomorrow; name a version or a digest", image));
  return {};
}

std::string kubernetes_text(const Deployment& deployment, const Offers& offers) {
  const Offer& offer = *offers.chosen();
  const Mount mount = mount_of(deployment);
  Manifest manifest = manifest_of(deployment, offers);
  manifest.arguments = serve_arguments(offer, mount);
  manifest.remarks = {fmt::format("{} of {}; its memory is an upper bound. The claim `models` has {} at {}.", manifest.name, offer.name,
                                  mount.host, mount.inside)};
  return manifest_text(manifest);
}

std::string docker_text(const Deployment& deployment, const Offers& offers) {
  const Offer& offer = *offers.chosen();
  const Mount mount = mount_of(deployment);
  std::vector<std::string> words = {"docker", "run",       "--rm", "--read-only", "--tmpfs", "/tmp",
                                    "-p",     "8000:8000", "-p",   "8001:8001",   "-p",      "8002:8002"};
  const auto add = [&](const char* flag, const std::string& value) { words.insert(words.end(), {flag, value}); };
  add("--cpus", std::to_string(offer.cores()));
  const std::string memory = fmt::format("{}m", limit_mebibytes(offer, offers.memory_threshold));
  add("--memory", memory);
  add("--memory-swap", memory);
  if (offer.on_card()) add("--gpus", offer.slice.empty() ? "1" : "device=MIG-UUID");
  add("-v", mount.host + ":" + mount.inside + ":ro");
  words.push_back(image_of(deployment, offer));
  for (const std::string& word : serve_arguments(offer, mount)) words.push_back(word);
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + quoted_for_shell(word);
  const char* const slice = "# MIG-UUID: that of the slice, as nvidia-smi -L prints it\n";
  return (offer.slice.empty() ? "" : slice) + line + "\n";
}

}  // namespace serin::planner
