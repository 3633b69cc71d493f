"""An HTTPRoute that divides the traffic of the service `digits`, and its weights."""

ROUTES = ("gateway.networking.k8s.io", "models", "httproutes")


def http_route(name="digits"):
    """The first rule divides, the second one is for testers."""
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": name, "labels": {"team": "vision"}}, "spec": {
        "parentRefs": [{"name": "front"}], "hostnames": ["digits.example.com"], "rules": [
            {"matches": [{"path": {"type": "PathPrefix", "value": "/v2/models/digits"}}],
             "filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x-team", "value": "vision"}]}}],
             "backendRefs": [{"name": "serin", "port": 8000, "weight": 1}, {"name": "serin-canary", "port": 8000, "weight": 1}]},
            {"matches": [{"headers": [{"name": "x-tester", "value": "yes"}]}], "backendRefs": [{"name": "serin-canary", "port": 8000}]}]}}


def of_service(service, **more):
    return {**service, "http_route": {"name": "digits", "backends": {"1": "serin", "2": "serin-canary"}, **more}}


def weights(route):
    """(stable's, the canary's) in the rule that has both."""
    for rule in route["spec"]["rules"]:
        found = {backend["name"]: backend.get("weight") for backend in rule.get("backendRefs", ())}
        if {"serin", "serin-canary"} <= found.keys():
            return found["serin"], found["serin-canary"]
    return None
