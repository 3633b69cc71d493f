"""Memory that `serin plan` states for a server, and that other ways estimate, next to what processes take: bench/plan --peers, see bench/plan_peers.py --help."""

import argparse
import collections
import datetime
import json
import pathlib
import statistics
import subprocess

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import TensorProto

import engines
import plan_server
import table
import work

MODELS = ("resnet18 resnet50 resnext50_32x4d vgg11_bn mobilenet_v2 mobilenet_v3_large efficientnet_b0 shufflenet_v2_x1_0 densenet121 googlenet inception_v3 "
          "regnet_y_400mf convnext_tiny_224 vit_b_16 swin_t_224 unet deeplabv3 yolo squeezenet1_1 mnasnet1_0 bert_tiny bert_base minilm gpt2 llama whisper_encoder "
          "wav2vec2 lstm_tagger").split()
EPILOGUE = """
Measured: the most memory that a process ever held (VmHWM), and what it held after the last run (VmRSS). Serin is `serin serve` with one instance and one client, which keeps its connection and sends batches. The peers are processes
of Python with one session, one thread and fixed shapes. "net" is without what the process held before the model: for Serin a server without models, for a
peer its interpreter with the library imported.

Estimated: Serin's plan of the same server, as a whole. The rule of thumb is weights + 1.5 x batch x seq x hidden x 4 B. For texts, seq is the length of the
request and hidden the width of the embeddings; for all others, seq x hidden is the number of elements of an item's largest result of a convolution or a
product with weights. accelerate is the bytes of parameters and buffers in fp32, and 20 % more, as its documentation has it for inference. Bytes of weights
are those of the file, or with --accelerate those that accelerate itself counts.
"""
BYTES = {TensorProto.FLOAT: 4, TensorProto.DOUBLE: 8, TensorProto.FLOAT16: 2, TensorProto.INT64: 8, TensorProto.INT32: 4, TensorProto.INT8: 1, TensorProto.UINT8: 1, TensorProto.BOOL: 1}
MB = 1e6
LARGE = 20 * MB  # of weights: below it the library is most of a process
Measured = collections.namedtuple("Measured", "whole net held")  # `held`: after the last run, without what the process held before


def flags():
    parser = argparse.ArgumentParser("bench/plan --peers", description="Planned and estimated memory next to what processes take.", epilog=EPILOGUE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help=f"names of tests/models.txt ({len(MODELS)} of them)")
    parser.add_argument("--batch", type=int, default=4, help="rows of a request (4)")
    parser.add_argument("--accelerate", metavar="PYTHON", help="a Python with accelerate and deploy/requirements-models.txt, which counts the weights (bench/plan_accelerate.py)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    options.models = options.models or MODELS
    return options


def work_of(name):
    return work.Work(name, name, "", work.sizes_of(work.listing.entries()[name]))


# --- estimates -------------------------------------------------------------------------------------------------------------------------


def weight_bytes(model):
    return sum(int(np.prod(tensor.dims)) * BYTES[tensor.data_type] for tensor in model.graph.initializer)


def embedding_width(model):
    """Columns of the largest table that rows are gathered from; nothing: there is none."""
    tables = {tensor.name: tensor.dims for tensor in model.graph.initializer if len(tensor.dims) == 2 and tensor.data_type == TensorProto.FLOAT}
    gathered = [tables[node.input[0]] for node in model.graph.node if node.op_type == "Gather" and node.input[0] in tables]
    return max(gathered, key=lambda dims: dims[0] * dims[1])[1] if gathered else None


def largest_result(model, inputs):
    """Elements, of one item, that a convolution or a product with weights writes at most. The model is run, because exporters leave shapes open."""
    weights = {tensor.name for tensor in model.graph.initializer}
    names = [node.output[0] for node in model.graph.node if node.op_type in ("Conv", "ConvTranspose", "MatMul", "Gemm") and node.input[1] in weights]
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    known = {output.name for output in model.graph.output}
    shown.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names if name not in known)
    rows = len(next(iter(inputs.values())))
    return max(value.size for value in work.listing.reference(shown.SerializeToString(), optimised=False).run(names, inputs)) // rows


def rule_of_thumb(model, inputs, sizes, weights):
    rows = len(next(iter(inputs.values())))
    width = embedding_width(model)
    hidden_states = dict(sizes)["seq"] * width if "seq" in dict(sizes) and width else largest_result(model, inputs)
    return weights + 1.5 * 4 * rows * hidden_states


def accelerate_bytes(python, names):
    """({name: bytes}, how they were counted)"""
    if not python:
        return {}, "accelerate's formula on the weights of the file"
    done = subprocess.run([python, "-B", pathlib.Path(__file__).with_name("plan_accelerate.py"), *names], stdout=subprocess.PIPE, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["bytes"], f"accelerate {answer['version']}"


# --- measurements ----------------------------------------------------------------------------------------------------------------------


def peer(name, job):
    with engines.peer(name, job, 0.2) as engine:
        engine.measure()
        whole, before = engine.memory("VmHWM"), engine.ready["imported"]
        return Measured(whole, whole - before, engine.memory("VmRSS") - before)


# --- the tables ------------------------------------------------------------------------------------------------------------------------

MEASURED = {"serin": "Serin", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
ESTIMATES = {"thumb": "rule of thumb", "accelerate": "accelerate"}


def row_of(name, rows, counted, base):
    one = work_of(name)
    job = work.job(one, rows)
    inputs = dict(np.load(job.inputs))
    model = onnx.load(one.path)
    weights = counted.get(name, weight_bytes(model))
    own = plan_server.plan_and_serve(one.path, inputs, one.sizes, rows)
    row = {"model": name, "batch": rows, "sizes": dict(one.sizes), "weights": weights, "plan": own.planned, "thumb": rule_of_thumb(model, inputs, one.sizes, weights), "accelerate": 1.2 * weights, "serin": Measured(own.most, own.most - base, own.held - base)._asdict()}
    for engine in engines.PEERS:
        row[engine] = peer(engine, job)._asdict()
    return row


def megabytes(value):
    return f"{value / MB:.1f}"


def print_bytes(rows):
    line = table.Table.line
    line(["model", "planned", "Serin", "Serin net", "rule of thumb", "accelerate", *(f"{engines.PEERS[name]}{net}" for name in engines.PEERS for net in ("", " net"))])
    line(["---"] * 10)
    for row in rows:
        title = row["model"] + "".join(f" {dim} {size}" for dim, size in row["sizes"].items())
        measured = [row[name][part] for name in MEASURED for part in ("whole", "net")]
        line([title, *map(megabytes, (row["plan"], *measured[:2], row["thumb"], row["accelerate"], *measured[2:]))])


def print_ratios(rows):
    line = table.Table.line
    line(["model", "plan / Serin", *(f"{ESTIMATES[estimate]} / {MEASURED[engine]} net" for estimate in ESTIMATES for engine in MEASURED)])
    line(["---"] * 8)
    for row in rows:
        line([row["model"], f"{row['plan'] / row['serin']['whole']:.2f}", *(f"{row[estimate] / row[engine]['net']:.2f}" for estimate in ESTIMATES for engine in MEASURED)])


def errors_of(ratios):
    """Cells: how many are too low, the mean error, the least and the greatest ratio."""
    under = sum(ratio < 1 for ratio in ratios)
    return [f"{under} of {len(ratios)}", f"{100 * statistics.mean(abs(ratio - 1) for ratio in ratios):.1f} %", f"{min(ratios):.2f}", f"{max(ratios):.2f}"] if ratios else ["-"] * 4


def print_summary(rows):
    """How far each estimate is from what it is compared with, over all models and over the large ones."""
    line = table.Table.line
    line(["estimate", "compared with", *(f"{what}{of}" for of in ("", ", large") for what in ("too low", "mean error", "least", "most"))])
    line(["---"] * 10)
    pairs = [("plan", "serin", "whole")] + [(estimate, engine, part) for estimate in ESTIMATES for engine in MEASURED for part in ("net", "held")]
    titles = {"whole": "{}, the whole process", "net": "{} net", "held": "{} net, after the last run"}
    for estimate, engine, part in pairs:
        found, large = ([row[estimate] / row[engine][part] for row in rows if row["weights"] >= least] for least in (0, LARGE))
        line([ESTIMATES.get(estimate, "serin plan"), titles[part].format(MEASURED[engine]), *errors_of(found), *errors_of(large)])


def main():
    options = flags()
    counted, how = accelerate_bytes(options.accelerate, options.models)
    base = plan_server.without_models()
    print(f"{datetime.date.today()}, {table.machine()}\nONNX Runtime {onnxruntime.__version__}, OpenVINO {openvino.__version__.split('-')[0]}, {how}; "
          f"batches of {options.batch}, one thread; MB. A server without models takes {megabytes(base)} MB.\n", flush=True)
    rows = [row_of(name, options.batch, counted, base) for name in options.models]
    print_bytes(rows)
    print()
    print_ratios(rows)
    print()
    print_summary(rows)
    print(f"\nLarge are models with {megabytes(LARGE)} MB of weights or more: " + ", ".join(row["model"] for row in rows if row["weights"] >= LARGE))
    if options.json:
        options.json.write_text(json.dumps({"machine": table.machine(), "serin_base": base, "weights": how, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
