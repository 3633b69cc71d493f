"""Values of the chart: sets that cover all of its templates, and sets that are wrong, each with the key that its refusal must name."""

SERVICES = [{"name": "digits", "initialStable": "1", "versions": [
    {"name": "1", "track": "stable", "path": "/v2/models/digits/versions/1"}, {"name": "2", "track": "canary", "path": "/v2/models/digits/versions/2"}]}]
DIGEST = "sha256:" + "0123456789abcdef" * 4
CLAIM = {"create": True}

GOOD = {
    "defaults": {"runtime": {"models": CLAIM}},
    "without-an-autoscaler": {"runtime": {"models": CLAIM, "replicas": 3, "autoscaling": {"kind": "none"}}},
    "gpu": {"runtime": {
        "models": {**CLAIM, "accessModes": ["ReadOnlyMany"]}, "image": {"tag": "cuda"}, "device": "cuda", "accelerator": {"count": 2}, "sharedMemory": "1Gi",
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}], "spread": {"nodes": "DoNotSchedule"},
        "autoscaling": {"min": 3, "cpuPercent": 0, "metrics": [{"type": "pods", "name": "nv_inference_pending_request_count", "average": "4"}]}}},
    "mig": {"runtime": {"models": CLAIM, "device": "cuda:0", "accelerator": {"resource": "nvidia.com/mig-1g.10gb", "count": 1}}},
    "canary": {"runtime": {"models": CLAIM}, "canary": {"enabled": True, "image": {"digest": DIGEST}, "autoscaling": {"min": 1}},
               "router": {"enabled": True, "services": SERVICES}},
    "routers-on-etcd": {
        "runtime": {"models": CLAIM}, "router": {"enabled": True, "services": SERVICES, "replicas": 3, "antiAffinity": "required", "tlsSecret": "front",
                                                 "store": {"kind": "etcd", "etcd": {"endpoints": ["http://etcd:2379"]}}}},
    "a-router-with-a-volume": {"runtime": {"models": CLAIM}, "router": {"enabled": True, "services": SERVICES, "store": {"kind": "sqlite", "size": "2Gi"}}},
    "a-router-alone": {"runtime": {"enabled": False}, "router": {"enabled": True, "config": "listen: 0.0.0.0:8080\n", "args": ["--log-level", "debug"]}},
    "tls-and-tokens": {"runtime": {"models": CLAIM, "tlsSecret": "server", "tokensSecret": "tokens", "env": {"A": "b"}, "args": ["--threads", "2"]},
                       "image": {"digest": DIGEST, "pullSecrets": ["registry"], "pullPolicy": "Always"}},
    "registry": {"runtime": {"models": {"create": True, "registry": {"url": "s3://models/registry", "secret": "bucket", "caSecret": "bucket-ca", "ports": [9000, 443]}}}},
    "peers": {"runtime": {"startSeconds": 600, "models": {"registry": {"url": "oci://images.example.com/models/digits", "peers": True}}}, "canary": {"enabled": True},
              "router": {"enabled": True, "services": SERVICES}, "istio": {"enabled": True}},
    "peers-with-tls": {"runtime": {"tlsSecret": "server", "models": {"registry": {"url": "registry+https://models.example.com/digits:production", "peers": True}}}},
    "bounds-of-the-namespace": {
        "runtime": {"models": CLAIM, "priorityClass": "test-priority"}, "quota": {"enabled": True, "accelerators": 2}, "limits": {"enabled": True},
        "priority": {"create": True, "name": "test-priority"}},
    "load-balancer": {
        "runtime": {"models": CLAIM, "service": {"type": "LoadBalancer", "sourceRanges": ["10.0.0.0/8"], "annotations": {"example.com/a": "b"}}},
        "ingress": {"enabled": True, "className": "nginx", "host": "models.example.com", "tlsSecret": "front", "annotations": {"example.com/a": "b"}}},
    "node-ports": {"runtime": {"models": CLAIM, "service": {"type": "NodePort", "httpNodePort": 30800, "grpcNodePort": 30801}},
                   "canary": {"enabled": True, "service": {"type": "ClusterIP", "httpNodePort": 0, "grpcNodePort": 0}},
                   "router": {"enabled": True, "services": SERVICES, "service": {"type": "NodePort", "httpNodePort": 30880}}, "ingress": {"enabled": True}},
    "monitoring": {
        "runtime": {"models": CLAIM}, "router": {"enabled": True, "services": SERVICES},
        "monitoring": {"serviceMonitor": True, "rules": True, "runbooks": "https://git.example.com/RUNBOOK.md#", "dashboard": True, "labels": {"release": "prometheus"}}},
    "pod-monitor": {"runtime": {"models": CLAIM}, "monitoring": {"serviceMonitor": True, "podMonitor": True, "interval": "5s"}},
    "keda": {"runtime": {"models": CLAIM, "autoscaling": {"kind": "keda", "min": 0, "keda": {"query": "sum(x)", "threshold": "2"}}}},
    "keda-and-router": {
        "runtime": {"models": CLAIM, "autoscaling": {"kind": "keda", "min": 0, "keda": {"source": "router", "threshold": "8"}}},
        "canary": {"enabled": True, "autoscaling": {"min": 1, "keda": {"metric": "serin_route_requests_per_second", "threshold": "0.5"}}},
        "router": {"enabled": True, "services": SERVICES,
                   "externalScaler": {"enabled": True, "secret": "scaler", "kedaSecret": "keda", "kedaNamespace": "keda-system"}}},
    "keda-and-router-without-tls": {
        "runtime": {"models": CLAIM, "autoscaling": {"kind": "keda", "keda": {"source": "router"}}},
        "router": {"enabled": True, "services": SERVICES, "externalScaler": {"enabled": True}}},
    "http-route": {
        "runtime": {"models": CLAIM}, "canary": {"enabled": True},
        "router": {"enabled": True, "services": [{**SERVICES[0], "httpRoute": {"name": "digits", "backends": {"1": "serin", "2": "serin-canary"}}}]}},
    "http-route-and-a-volume": {
        "runtime": {"models": CLAIM},
        "router": {"enabled": True, "store": {"kind": "sqlite"}, "services": [
            {**SERVICES[0], "httpRoute": {"name": "digits", "backends": {"1": "serin", "2": "serin-canary"}}}]}},
    "istio": {"runtime": {"models": CLAIM}, "canary": {"enabled": True}, "router": {"enabled": True, "services": SERVICES}, "istio": {"enabled": True}},
    "kserve": {"runtime": {"enabled": False}, "kserve": {"enabled": True}},
    "more-metrics": {"runtime": {"models": CLAIM, "autoscaling": {"metrics": [
        {"type": "service", "name": "serin_route_requests_per_second", "average": "100"}, {"type": "external", "name": "queue_depth", "average": "4"}]}},
        "router": {"enabled": True, "services": SERVICES}},
    "external-metrics": {
        "runtime": {"models": CLAIM, "autoscaling": {"cpuPercent": 0, "metrics": [
            {"type": "external", "name": "serin_route_in_flight_requests", "average": "8", "selector": {"service": "digits", "version": "1"}}]}},
        "router": {"enabled": True, "services": SERVICES, "externalMetrics": {"enabled": True}}},
    "nodes-that-end": {"runtime": {"models": CLAIM}, "router": {"enabled": True, "services": SERVICES, "nodeTaints": [
        "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "aws-node-termination-handler/spot-itn"]}},
    "network": {
        "runtime": {"models": CLAIM}, "router": {"enabled": True, "services": SERVICES}, "disruption": {"maxUnavailable": "25%"},
        "networkPolicy": {"clients": [{"namespaceLabels": {"team": "a"}, "podLabels": {"app": "b"}}, {"cidr": "10.0.0.0/8"}],
                          "egress": [{"cidr": "10.1.0.0/16", "port": 443}]}},
}

BAD = [
    ("replica", {"replica": 3}),
    ("replica", {"runtime": {"replica": 3}}),
    ("replicas", {"runtime": {"replicas": "two"}}),
    ("replicas", {"runtime": {"replicas": -1}}),
    ("device", {"runtime": {"device": "gpu"}}),
    ("size", {"runtime": {"models": {"size": "10 GB"}}}),
    ("accessModes", {"runtime": {"models": {"accessModes": ["ReadWriteAll"]}}}),
    ("accessModes", {"runtime": {"models": {"accessModes": []}}}),
    ("claim", {"runtime": {"models": {"claim": "My Models"}}}),
    ("url", {"runtime": {"models": {"registry": {"url": "models/digits"}}}}),
    ("url", {"runtime": {"models": {"registry": {"url": "ftp://models.example.com/digits"}}}}),
    ("ports", {"runtime": {"models": {"registry": {"ports": ["https"]}}}}),
    ("runtime.models.registry.peers", {"runtime": {"models": {"registry": {"peers": True}}}}),
    ("gpus", {"runtime": {"resources": {"limits": {"gpus": "1"}}}}),
    ("memory", {"runtime": {"resources": {"limits": {"memory": "2GiB"}}}}),
    ("effect", {"runtime": {"tolerations": [{"key": "a", "effect": "NoScheduling"}]}}),
    ("zones", {"runtime": {"spread": {"zones": "Always"}}}),
    ("drainSeconds", {"runtime": {"drainSeconds": "10s"}}),
    ("kind", {"runtime": {"autoscaling": {"kind": "HPA"}}}),
    ("average", {"runtime": {"autoscaling": {"metrics": [{"type": "pods", "name": "a"}]}}}),
    ("cpuPercent", {"runtime": {"autoscaling": {"cpuPercent": 0}}}),
    ("httpNodePort", {"runtime": {"service": {"type": "NodePort", "httpNodePort": 80}}}),
    ("digest", {"image": {"digest": "sha256:123"}}),
    ("pullPolicy", {"image": {"pullPolicy": "ifNotPresent"}}),
    ("enable", {"canary": {"enable": True}}),
    ("services", {"router": {"enabled": True}}),
    ("versions", {"router": {"services": [{"name": "a", "initialStable": "1", "versions": []}]}}),
    ("track", {"router": {"services": [{"name": "a", "initialStable": "1", "versions": [{"name": "1", "track": "green"}]}]}}),
    ("endpoints", {"router": {"enabled": True, "services": SERVICES, "store": {"kind": "etcd"}}}),
    ("kind", {"router": {"store": {"kind": "redis"}}}),
    ("replicas", {"router": {"enabled": True, "services": SERVICES, "replicas": 5}}),
    ("nodeTaints", {"router": {"nodeTaints": ["a taint"]}}),
    ("nodeTaints", {"router": {"enabled": True, "services": SERVICES, "store": {"kind": "sqlite"}, "nodeTaints": ["karpenter.sh/disrupted"]}}),
    ("caBundle", {"router": {"externalMetrics": {"caBundle": "/etc/ca.crt"}}}),
    ("externalScaler", {"runtime": {"autoscaling": {"kind": "keda", "keda": {"source": "router"}}}}),
    ("track is stable", {"runtime": {"autoscaling": {"kind": "keda", "keda": {"source": "router"}}},
                         "router": {"enabled": True, "config": "listen: 0.0.0.0:8080\n", "externalScaler": {"enabled": True}}}),
    ("kedaSecret", {"router": {"enabled": True, "services": SERVICES, "externalScaler": {"enabled": True, "secret": "scaler"}}}),
    ("metric", {"runtime": {"autoscaling": {"keda": {"metric": "serin_route_requests_total"}}}}),
    ("backends", {"router": {"services": [{**SERVICES[0], "httpRoute": {"name": "digits"}}]}}),
    ("selector", {"runtime": {"autoscaling": {"metrics": [{"type": "external", "name": "a", "average": "1", "selector": {"service": 1}}]}}}),
    ("host", {"ingress": {"host": 3}}),
    ("maxUnavailable", {"disruption": {"maxUnavailable": "1 pod"}}),
    ("cidr", {"networkPolicy": {"clients": [{"cidr": "everywhere"}]}}),
    ("runbooks", {"monitoring": {"runbooks": "RUNBOOK.md"}}),
    ("interval", {"monitoring": {"interval": 15}}),
    ("storageUri", {"kserve": {"storageUri": "models/digits"}}),
]
