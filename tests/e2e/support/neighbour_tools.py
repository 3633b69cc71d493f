"""Argo Rollouts and Flagger, as far as a router sees them: what they send with the objects of deploy/neighbours, and what they make of the answer.

    argo = Argo("serin-verdict", router, canary="2")
    argo.measure()                     # Successful, Failed, Inconclusive or Error, as evaluate.EvaluateResult of Argo has it
    flagger = Flagger(router)
    flagger.ask("rollback")            # whether its webhook of that type was answered with 200 to 202

Both are asked at the router's own address; everything else is from the files.
"""

import json
import re

import yaml

from conftest import ROOT, call
from routers import JSON

FOLDER = ROOT / "deploy/neighbours"


def objects(name):
    """{(kind, name): object} of a file."""
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text())}


def holds(condition, result):
    """A condition in the language of Argo, of which the files have comparisons, `len` and `&&`: as in Python, but for that sign."""
    return eval(condition.replace("&&", "and"), {"__builtins__": {"len": len}}, {"result": result})


class Argo:
    def __init__(self, template, router, canary, token="", service="digits"):
        spec = objects("argo-rollouts")["AnalysisTemplate", template]["spec"]
        given = {"router": router.admin, "service": service, "canary": canary, "token": token}
        self.arguments = {each["name"]: given.get(each["name"], each.get("value")) for each in spec["args"]}
        self.metric, = spec["metrics"]

    def fill(self, text):
        return re.sub(r"\{\{args\.(\w+)\}\}", lambda found: self.arguments[found[1]], text)

    def measure(self):
        web = self.metric["provider"]["web"]
        answer = call(self.fill(web["url"]), headers={each["key"]: self.fill(each["value"]) for each in web["headers"]})
        if answer.status // 100 != 2:
            return "Error"
        field, = re.fullmatch(r"\{\$\.(\w+)\}", web["jsonPath"]).groups()
        return self.phase_of(answer.json[field])

    def phase_of(self, result):
        if holds(self.metric["failureCondition"], result):
            return "Failed"
        return "Successful" if holds(self.metric["successCondition"], result) else "Inconclusive"

    def query(self):
        return self.fill(self.metric["provider"]["prometheus"]["query"])


class Flagger:
    def __init__(self, router, canary="2", token=""):
        self.router, self.canary, self.token = router, canary, token
        self.spec = objects("flagger")["Canary", "serin"]["spec"]["analysis"]
        self.webhooks = {each["type"]: each for each in self.spec["webhooks"]}

    def ask(self, type):
        webhook = self.webhooks[type]
        metadata = {key: value.replace("VIEWER_TOKEN", self.token) for key, value in webhook["metadata"].items()}
        path = re.fullmatch(r"http://serin-router-admin\.models:8081(/\S+)", webhook["url"])[1].replace("canary=2", f"canary={self.canary}")
        payload = {"name": "serin", "namespace": "models", "phase": "Progressing", "checksum": "85d557f47b", "metadata": metadata}
        return 200 <= call(self.router.admin + path, json.dumps(payload), JSON).status <= 202

    def query(self):
        metric, = self.spec["metrics"]
        query = objects("flagger")["MetricTemplate", metric["templateRef"]["name"]]["spec"]["query"]
        given = {**metric["templateVariables"], "canary": self.canary}
        return re.sub(r"\{\{ variables\.(\w+) \}\}", lambda found: given[found[1]], query)
