"""What is ordered of a server that takes orders: models, shared memory, settings of the log and of traces; good orders and bad ones, over REST and gRPC.

Exchanges as asked.py's and asked_grpc.py's, with "server": "explicit". They are asked in this order: one may change what the next one sees.
"""

from tritonclient.grpc import service_pb2

import asked
import asked_grpc
from asked import ask

SERVER = "explicit"
TRITON = ("--model-control-mode=explicit", "--load-model=identity")
SERIN = {"serin": ("--control", "explicit", "--load", "identity", "--admin-on-data-port", "--shared-memory"),
         "tritonserver": ("--model-control-mode=explicit", "--load-model=identity")}  # fmt: skip
NO_KEY = "/not-there-0b5c"


def models():
    for name, body in {"": {}, "/no-body": "", "/config": {"parameters": {"config": "{}"}}}.items():
        ask(f"control/load/nope{name}", "POST", "/v2/repository/models/nope/load", body)
    for name, body in {"": {}, "/again": {}, "/bad-config": {"parameters": {"config": "{"}}, "/broken": "{"}.items():
        ask(f"control/load/simple{name}", "POST", "/v2/repository/models/simple/load", body)
    ask("control/ready/simple", "GET", "/v2/models/simple/ready")
    for name, model in {"simple": "simple", "simple/again": "simple", "nope": "nope"}.items():
        ask(f"control/unload/{name}", "POST", f"/v2/repository/models/{model}/unload", {})
    for model in ("simple", "nope"):
        ask(f"control/ready/{model}/unloaded", "GET", f"/v2/models/{model}/ready")


def settings():
    ask("control/logging", "GET", "/v2/logging")
    changes = [("log_verbose_level", value) for value in (2, -1, 1.5, "2", True, 2**31 - 1, 2**31, 0)]
    changes += [("log_format", value) for value in ("ISO8601", "default", "iso8601", "json", 1, "default")]
    changes += [(name, value) for name in ("log_info", "log_warning", "log_error") for value in (False, 1, "true", True)]
    changes += [("log_file", "/tmp/x"), ("log_file", ""), ("loud", True)]
    for i, (key, value) in enumerate(changes):
        ask(f"control/logging/{key}/{i}/{value!r}", "POST", "/v2/logging", {key: value})
    for name, body in {"object": {}, "empty": "", "array": "[]", "broken": "{"}.items():
        ask(f"control/logging/{name}", "POST", "/v2/logging", body)
    ask("control/logging/verb", "PUT", "/v2/logging", {})
    for path in ("/v2/trace/setting", "/v2/models/identity/trace/setting"):
        for value in ("/tmp/x", "", None):
            ask(f"control/trace/file/{value!r}", "POST", path, {"trace_file": value})
    for path in ("/v2/logging", "/v2/trace/setting"):
        ask(f"control/again{path}", "GET", path)


def regions():
    system, cuda = "/v2/systemsharedmemory", "/v2/cudasharedmemory"
    for path in (system, cuda):
        for part in ("", "/region/r"):
            ask(f"control/memory{path}{part}/status", "GET", f"{path}{part}/status")
            ask(f"control/memory{path}{part}/unregister", "POST", f"{path}{part}/unregister")
    whole = {"key": NO_KEY, "offset": 0, "byte_size": 64}
    for name, change in {"": {}, "/path": {"key": "/a/b"}, "/no-name": {"key": ""}, "/number": {"key": 1}, "/size-0": {"byte_size": 0}, "/size-1": {"byte_size": -1},
                         "/offset-1": {"offset": -1}}.items():  # fmt: skip
        ask(f"control/memory/register{name}", "POST", f"{system}/region/r/register", {**whole, **change})
    for missing in ("key", "byte_size"):
        ask(f"control/memory/register/no-{missing}", "POST", f"{system}/region/r/register", {key: value for key, value in whole.items() if key != missing})


def over_grpc():
    def order(name, call, /, **fields):
        asked_grpc.ask(f"control/{name}", call, getattr(service_pb2, f"{call}Request")(**fields))

    for name, model in (("nope", "nope"), ("none", ""), ("simple", "simple")):
        order(f"load/{name}", "RepositoryModelLoad", model_name=model)
    order("load/repository", "RepositoryModelLoad", repository_name="r", model_name="nope")
    for name in ("simple", "nope"):
        order(f"unload/{name}", "RepositoryModelUnload", model_name=name)
        order(f"ready/{name}", "ModelReady", name=name)
    for kind in ("System", "Cuda"):
        order(f"memory/{kind}/status", f"{kind}SharedMemoryStatus", name="r")
        order(f"memory/{kind}/unregister", f"{kind}SharedMemoryUnregister", name="r")
    for name, key in (("", NO_KEY), ("/path", "/a/b")):
        order(f"memory/register{name}", "SystemSharedMemoryRegister", name="r", key=key, byte_size=4)
    value = service_pb2.LogSettingsRequest.SettingValue
    for key, setting in (("log_verbose_level", value(uint32_param=2)), ("log_format", value(string_param="ISO8601")), ("log_file", value(string_param="/tmp/x")),
                         ("log_info", value(string_param="x")), ("log_verbose_level", value(string_param="x")), ("loud", value(bool_param=True)),
                         ("log_verbose_level", value(uint32_param=0)), ("log_format", value(string_param="default"))):  # fmt: skip
        order(f"logging/{key}/{str(setting).strip()}", "LogSettings", settings={key: setting})
    for name, values in (("path", ["/tmp/x"]), ("null", [])):
        order(f"trace/file/{name}", "TraceSetting", settings={"trace_file": service_pb2.TraceSettingRequest.SettingValue(value=values)})


def all_asked():
    asked.BODIES.clear()
    asked_grpc.CALLS.clear()
    for group in (models, settings, regions, over_grpc):
        group()
    return [{**exchange, "server": SERVER} for exchange in (*asked.BODIES, *asked_grpc.CALLS)]
