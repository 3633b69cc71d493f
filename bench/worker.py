"""A peer in a process of its own, kept warm: ONNX Runtime or OpenVINO on one model.

    worker.py ENGINE MODEL INPUTS.npz --threads N [--precision fp32] [--seconds 0.2] [--dims '{"batch": 8}'] [--outputs FILE.npz]

Prints one JSON object when it has given its first answer, then one for each line on standard input, as `serin bench --on-request` does:
the median time of single runs in milliseconds. Inputs and outputs are bound beforehand and shapes are fixed, so that each peer is
measured at its best.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import numpy as np


def memory(field, process="self"):
    """Of a process, in bytes: Pss (shared pages counted by share), VmRSS (resident) or VmHWM (the most that was ever resident)."""
    file = "smaps_rollup" if field == "Pss" else "status"
    line = next(line for line in pathlib.Path(f"/proc/{process}/{file}").read_text().splitlines() if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


class OnnxRuntime:
    def __init__(self, model, inputs, threads, precision, dims):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        for name, size in dims.items():
            options.add_free_dimension_override_by_name(name, size)
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        for name, value in inputs.items():
            self.binding.bind_cpu_input(name, value)
        for tensor in self.session.get_outputs():
            self.binding.bind_output(tensor.name)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        return [value.numpy() for value in self.binding.get_outputs()]


class OpenVino:
    def __init__(self, model, inputs, threads, precision, dims):
        import openvino

        core = openvino.Core()
        network = core.read_model(model)
        network.reshape({name: list(value.shape) for name, value in inputs.items()})
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": {"bf16": "bf16"}.get(precision, "f32"),
        }
        self.request = core.compile_model(network, "CPU", settings).create_infer_request()
        self.held = {name: openvino.Tensor(value) for name, value in inputs.items()}
        for name, tensor in self.held.items():
            self.request.set_tensor(name, tensor)
        self.count = len(network.outputs)

    def run(self):
        self.request.infer()

    def outputs(self):
        return [self.request.get_output_tensor(i).data for i in range(self.count)]


def median_ms(engine, seconds):
    engine.run()
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        engine.run()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=["onnxruntime", "openvino"])
    parser.add_argument("model")
    parser.add_argument("inputs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--dims", type=json.loads, default={})
    parser.add_argument("--outputs")
    arguments = parser.parse_args()

    inputs = dict(np.load(arguments.inputs))
    before = memory("Pss")
    __import__(arguments.engine)
    imported = memory("VmRSS")
    begin = time.perf_counter()
    engine = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}[arguments.engine](
        arguments.model, inputs, arguments.threads, arguments.precision, arguments.dims
    )
    engine.run()
    first_ms = (time.perf_counter() - begin) * 1e3
    ready = {"first_answer_ms": first_ms, "pss": memory("Pss") - before, "peak": memory("VmHWM") - before, "imported": imported}
    if arguments.outputs:
        np.savez(arguments.outputs, *engine.outputs())
    print(json.dumps(ready), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"median_ms": median_ms(engine, arguments.seconds)}), flush=True)


if __name__ == "__main__":
    main()
