// deployment.cc: writes what deploy/kubernetes has, with the numbers of an offer. Probes, ports and the security context are those of the base there.

#include "runtime/planner/deployment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "runtime/base/json_quote.h"
#include "runtime/base/version.h"
#include "runtime/planner/places.h"

namespace serin::planner {
namespace {

namespace fs = std::filesystem;

constexpr double kMebi = 1048576;

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
  if (!deployment.image.empty()) return deployment.image;
  return offer.on_card() ? std::string("serin:cuda") : fmt::format("serin:{}", kVersion);
}

/// The limit: the plan, and what the policy keeps free.
size_t mebibytes(const Offer& offer, double threshold) {
  return static_cast<size_t>(std::ceil(static_cast<double>(offer.process) / threshold / kMebi));
}

std::string object_name(const std::string& model) {
  std::string name = "serin-";
  for (const char c : model)
    name += std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '-';
  constexpr size_t kMost = 52;  // Kubernetes adds 11 characters for a pod, and permits 63
  name.resize(std::min(name.size(), kMost));
  while (name.ends_with('-')) name.pop_back();
  return name;
}

std::string in_json(const std::string& word) {
  std::string quoted;
  append_json_quoted(quoted, word);
  return quoted;
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

std::string container_resources(const Offer& offer, double threshold) {
  std::string card;
  if (offer.on_card())
    card = fmt::format("\n            {}: 1", offer.slice.empty() ? std::string("nvidia.com/gpu") : "nvidia.com/mig-" + offer.slice);
  return fmt::format(R"(          requests:
            cpu: "{0}"
            memory: {1}Mi
          limits:
            cpu: "{0}"
            memory: {1}Mi{2}
)",
                     offer.cores(), mebibytes(offer, threshold), card);
}

std::string autoscaler(const std::string& name, const Deployment& deployment, const Offer& offer) {
  const int most = std::max(offer.replicas, deployment.most_replicas.value_or(2 * offer.replicas));
  return fmt::format(R"(---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {0}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {0}}}
  minReplicas: {1}
  maxReplicas: {2}
  metrics:
    - type: Pods # by prometheus-adapter, with the rules of deploy/prometheus/adapter.yml
      pods:
        metric: {{name: serin_model_in_flight_requests}}
        target: {{type: AverageValue, averageValue: "{3}"}}
  behavior:
    scaleUp:
      stabilizationWindowSeconds: 0
      policies: [{{type: Percent, value: 100, periodSeconds: 15}}]
    scaleDown:
      stabilizationWindowSeconds: 300
      policies: [{{type: Pods, value: 1, periodSeconds: 60}}]
)",
                     name, offer.replicas, most, static_cast<int64_t>(offer.in_flight));
}

}  // namespace

Status check_image(const std::string& image) {
  const size_t name = image.rfind('/') == std::string::npos ? 0 : image.rfind('/') + 1;
  if (image.find('@', name) != std::string::npos) return {};
  const size_t colon = image.find(':', name);
  if (image.empty() || colon == std::string::npos || colon + 1 == image.size())
    return invalid(fmt::format("image '{}' has no tag: name a version or a digest, so that every pod starts the same program", image));
  if (image.substr(colon + 1) == "latest")
    return invalid(fmt::format("image '{}': latest is another program tomorrow; name a version or a digest", image));
  return {};
}

std::string kubernetes_text(const Deployment& deployment, const Offers& offers) {
  const Offer& offer = *offers.chosen();
  const Mount mount = mount_of(deployment);
  const std::string name = object_name(deployment.name);
  std::string words;
  for (const std::string& word : serve_arguments(offer, mount)) words += fmt::format("        - {}\n", in_json(word));
  const bool loaded = offers.demand.rps > 0;
  std::string text = fmt::format("# {} of {}; its memory is an upper bound. The claim `models` has {} at {}.\n", name, offer.name,
                                 mount.host, mount.inside);
  text += fmt::format(R"(apiVersion: apps/v1
kind: Deployment
metadata:
  name: {0}
  labels: &labels
    app.kubernetes.io/name: serin
    app.kubernetes.io/instance: {0}
    app.kubernetes.io/component: runtime
spec:
{1}  selector:
    matchLabels: *labels
  strategy:
    rollingUpdate: {{maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata:
      labels: *labels
      annotations:
        prometheus.io/scrape: 'true'
        prometheus.io/port: '8002'
        prometheus.io/path: /metrics
    spec:
      terminationGracePeriodSeconds: 50
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 1000
        runAsGroup: 1000
        fsGroup: 1000
        seccompProfile:
          type: RuntimeDefault
      containers:
      - name: serin
        image: {2}
        args:
{3}        ports:
        - name: http
          containerPort: 8000
        - name: grpc
          containerPort: 8001
        - name: metrics
          containerPort: 8002
        startupProbe:
          httpGet: {{path: /v2/health/live, port: http}}
          periodSeconds: 2
          failureThreshold: 30
        livenessProbe:
          httpGet: {{path: /v2/health/live, port: http}}
          periodSeconds: 10
          timeoutSeconds: 5
        readinessProbe:
          httpGet: {{path: /v2/health/ready, port: http}}
          periodSeconds: 2
          timeoutSeconds: 2
        resources:
{4}        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities:
            drop: [ALL]
        volumeMounts:
        - name: models
          mountPath: /models
          readOnly: true
        - name: tmp
          mountPath: /tmp
      volumes:
      - name: models
        persistentVolumeClaim:
          claimName: models
          readOnly: true
      - name: tmp
        emptyDir:
          sizeLimit: 64Mi
)",
                      name, loaded ? "" : fmt::format("  replicas: {}\n", offer.replicas), in_json(image_of(deployment, offer)), words,
                      container_resources(offer, offers.memory_threshold));
  if (offer.on_card()) text += "      tolerations:\n      - key: nvidia.com/gpu\n        operator: Exists\n        effect: NoSchedule\n";
  return loaded ? text + autoscaler(name, deployment, offer) : text;
}

std::string docker_text(const Deployment& deployment, const Offers& offers) {
  const Offer& offer = *offers.chosen();
  const Mount mount = mount_of(deployment);
  std::vector<std::string> words = {"docker", "run",       "--rm", "--read-only", "--tmpfs", "/tmp",
                                    "-p",     "8000:8000", "-p",   "8001:8001",   "-p",      "8002:8002"};
  const auto add = [&](const char* flag, const std::string& value) { words.insert(words.end(), {flag, value}); };
  add("--cpus", std::to_string(offer.cores()));
  const std::string memory = fmt::format("{}m", mebibytes(offer, offers.memory_threshold));
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
