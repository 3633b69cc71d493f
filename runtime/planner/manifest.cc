#include "runtime/planner/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "runtime/base/json_quote.h"

namespace serin::planner {
namespace {

std::string in_json(const std::string& word) {
  std::string quoted;
  append_json_quoted(quoted, word);
  return quoted;
}

std::string lines(const Words& words, size_t indent) {
  std::string text;
  for (const auto& [name, value] : words) text += fmt::format("{:{}}{}: {}\n", "", indent, in_json(name), in_json(value));
  return text;
}

/// A new text is another number, so that pods are replaced when their settings change: FNV-1a.
uint64_t number_of(std::string_view text) {
  uint64_t number = 14695981039346656037U;
  for (const char c : text) number = (number ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return number;
}

std::string metadata(const Manifest& manifest) {
  return fmt::format(R"(metadata:
  name: {0}
  labels:
    app.kubernetes.io/name: serin
    app.kubernetes.io/instance: {0}
    app.kubernetes.io/component: runtime
{1})",
                     manifest.name, lines(manifest.labels, 4));
}

std::string config_map(const Manifest& manifest) {
  std::string text = "apiVersion: v1\nkind: ConfigMap\n" + metadata(manifest) + "data:\n  serin.yaml: |\n";
  for (size_t from = 0; from < manifest.settings.size();) {
    const size_t end = std::min(manifest.settings.find('\n', from), manifest.settings.size() - 1) + 1;
    text += "    " + manifest.settings.substr(from, end - from);
    from = end;
  }
  return text + "---\n";
}

std::string service(const Manifest& manifest) {
  return "apiVersion: v1\nkind: Service\n" + metadata(manifest) +
         fmt::format(R"(spec:
  selector:
    app.kubernetes.io/name: serin
    app.kubernetes.io/instance: {}
    app.kubernetes.io/component: runtime
  ports:
  - name: http
    port: 8000
    targetPort: http
    appProtocol: http
  - name: grpc
    port: 8001
    targetPort: grpc
    appProtocol: kubernetes.io/h2c
---
)",
                     manifest.name);
}

std::string pod_metadata(const Manifest& manifest) {
  std::string text = fmt::format(R"(    metadata:
      labels:
        app.kubernetes.io/name: serin
        app.kubernetes.io/instance: {0}
        app.kubernetes.io/component: runtime
{1}      annotations:
        prometheus.io/scrape: 'true'
        prometheus.io/port: '8002'
        prometheus.io/path: /metrics
{2})",
                                 manifest.name, lines(manifest.labels, 8), lines(manifest.annotations, 8));
  if (!manifest.settings.empty()) text += fmt::format("        serin.dev/settings: '{:016x}'\n", number_of(manifest.settings));
  return text;
}

std::string words(const Manifest& manifest) {
  std::string text;
  for (const std::string& word : manifest.arguments) text += fmt::format("        - {}\n", in_json(word));
  if (manifest.env.empty()) return text;
  text += "        env:\n";
  for (const auto& [name, value] : manifest.env) text += fmt::format("        - {{name: {}, value: {}}}\n", in_json(name), in_json(value));
  return text;
}

std::string resources(const Manifest& manifest) {
  const std::string card =
      manifest.accelerator.empty() ? std::string() : fmt::format("            {}: {}\n", manifest.accelerator, manifest.accelerators);
  return fmt::format(R"(          requests:
            cpu: "{0}"
            memory: {1}
          limits:
            cpu: "{0}"
            memory: {1}
{2})",
                     manifest.cpu, manifest.memory, card);
}

std::string mounts(const Manifest& manifest) {
  std::string text;
  for (const VolumeMount& mount : manifest.mounts) {
    text += fmt::format("        - name: {}\n          mountPath: {}\n", mount.volume, in_json(mount.path));
    if (!mount.sub_path.empty()) text += fmt::format("          subPath: {}\n", in_json(mount.sub_path));
    text += "          readOnly: true\n";
  }
  return text;
}

std::string volumes(const Manifest& manifest) {
  std::string text = R"(      volumes:
      - name: models
        persistentVolumeClaim:
          claimName: models
          readOnly: true
      - name: tmp
        emptyDir:
          sizeLimit: 64Mi
)";
  if (!manifest.settings.empty()) text += fmt::format("      - name: settings\n        configMap:\n          name: {}\n", manifest.name);
  return text;
}

std::string places(const Manifest& manifest) {
  std::string text;
  if (!manifest.node_selector.empty()) text += "      nodeSelector:\n" + lines(manifest.node_selector, 8);
  std::vector<Toleration> tolerations = manifest.tolerations;
  const bool card = !manifest.accelerator.empty();
  if (card && std::ranges::none_of(tolerations, [](const Toleration& each) { return each.key == "nvidia.com/gpu"; }))
    tolerations.push_back({.key = "nvidia.com/gpu", .op = "Exists", .value = {}, .effect = "NoSchedule", .seconds = {}});
  if (!tolerations.empty()) text += "      tolerations:\n";
  for (const Toleration& each : tolerations) {
    const Words all = {{"key", each.key}, {"operator", each.op}, {"value", each.value}, {"effect", each.effect}};
    std::string item;
    for (const auto& [name, value] : all)
      if (!value.empty()) item += fmt::format("{}{}: {}\n", item.empty() ? "      - " : "        ", name, in_json(value));
    if (each.seconds) item += fmt::format("        tolerationSeconds: {}\n", *each.seconds);
    text += item;
  }
  return text;
}

std::string deployment(const Manifest& manifest) {
  std::string text = "apiVersion: apps/v1\nkind: Deployment\n" + metadata(manifest);
  text += fmt::format(R"(spec:
{1}  selector:
    matchLabels:
      app.kubernetes.io/name: serin
      app.kubernetes.io/instance: {0}
      app.kubernetes.io/component: runtime
  strategy:
    rollingUpdate: {{maxSurge: 1, maxUnavailable: 0}}
  template:
{2}    spec:
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
        image: {3}
        args:
{4}        ports:
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
{5}        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities:
            drop: [ALL]
        volumeMounts:
{6}        - name: tmp
          mountPath: /tmp
)",
                      manifest.name, manifest.autoscaler ? "" : fmt::format("  replicas: {}\n", manifest.replicas), pod_metadata(manifest),
                      in_json(manifest.image), words(manifest), resources(manifest), mounts(manifest));
  return text + volumes(manifest) + places(manifest);
}

std::string metrics(const Autoscaler& scaler) {
  std::string text;
  if (scaler.in_flight > 0)
    text += fmt::format(R"(    - type: Pods # by prometheus-adapter, with the rules of deploy/prometheus/adapter.yml
      pods:
        metric: {{name: serin_model_in_flight_requests}}
        target: {{type: AverageValue, averageValue: "{}"}}
)",
                        scaler.in_flight);
  if (scaler.cpu_percent > 0)
    text += fmt::format(R"(    - type: ContainerResource
      containerResource:
        name: cpu
        container: serin
        target: {{type: Utilization, averageUtilization: {}}}
)",
                        scaler.cpu_percent);
  return text;
}

std::string autoscaler(const Manifest& manifest) {
  return "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n" + metadata(manifest) +
         fmt::format(R"(spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {0}}}
  minReplicas: {1}
  maxReplicas: {2}
  metrics:
{3}  behavior:
    scaleUp:
      stabilizationWindowSeconds: 0
      policies: [{{type: Percent, value: 100, periodSeconds: 15}}]
    scaleDown:
      stabilizationWindowSeconds: 300
      policies: [{{type: Pods, value: 1, periodSeconds: 60}}]
)",
                     manifest.name, manifest.autoscaler->least, manifest.autoscaler->most, metrics(*manifest.autoscaler));
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  std::string text;
  for (std::string remark : manifest.remarks) {
    std::ranges::replace_if(remark, [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');  // a line break would end the comment
    text += "# " + remark + "\n";
  }
  if (!manifest.settings.empty()) text += config_map(manifest);
  if (manifest.service) text += service(manifest);
  text += deployment(manifest);
  return manifest.autoscaler ? text + autoscaler(manifest) : text;
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

}  // namespace serin::planner
