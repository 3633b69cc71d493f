"""Trains the five example versions of `digits` and writes <version>/model.onnx and eval.npz beside this file.

Data: scikit-learn's 1,797 bundled 8x8 digits, pixels 0..16; 30 % of them, stratified, are held out as eval.npz and seen by no training.
Contract of the service: pixels f32 [batch, 64] -> scores f32 [batch, 10], a softmax; the answer is the argmax of the last axis.

  1  Mlp     stable                     3  Mlp trained on labels that were joined to the wrong rows
  2  Cnn     better, promoted           4  Flow, accurate, its solver asked for far too many steps
                                        5  the Cnn of version 2, exported without the layer that reshapes its input

    python3 -m venv venv && venv/bin/pip install -r deploy/requirements-models.txt
    venv/bin/python models/digits/train.py [--out DIR]

One thread and fixed seeds: a second run on the same CPU type writes the same bytes. Another CPU type may round the training's sums
differently, which moves an accuracy by a digit or two and nothing else.
"""

import argparse
import collections
import io
import pathlib
import time
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

SEED = 7
OPSET = 18
HELD_OUT = 0.3
UNIT = 1 / 16    # pixels come as 0..16, as scikit-learn has them
MAX_BYTES = 1 << 20  # of a committed model file


class Mlp(nn.Module):
    """64 -> 32 -> 10."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 32)
        self.classes = nn.Linear(32, 10)

    def forward(self, pixels):  # [batch, 64]
        return self.classes(torch.relu(self.hidden(pixels * UNIT)))


class ConvBnRelu(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class CnnTrunk(nn.Module):
    """The network proper, on images."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            ConvBnRelu(1, 16),   # [batch, 16, 8, 8]
            ConvBnRelu(16, 32),  # [batch, 32, 8, 8]
            nn.MaxPool2d(2),     # [batch, 32, 4, 4]
            ConvBnRelu(32, 64),  # [batch, 64, 4, 4]
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(64, 10))

    def forward(self, image):  # [batch, 1, 8, 8]
        return self.layers(image * UNIT)


class Cnn(nn.Module):
    """CnnTrunk behind the service's contract: rows of 64 pixels."""

    def __init__(self):
        super().__init__()
        self.trunk = CnnTrunk()

    def forward(self, pixels):  # [batch, 64]
        return self.trunk(pixels.reshape(-1, 1, 8, 8))


class Flow(nn.Module):
    """A neural ODE on the image enlarged to 16x16: dh/dt = relu(conv(h)), integrated by Euler steps that all share one set of weights.

    The number of steps is a free choice after training: more of them follow the same curve more finely, for nearly the same answer at
    a proportionally higher price. Version 4 is what happens when somebody raises it before the export.
    """

    HORIZON = 0.5  # how far t runs: short enough that two steps and two hundred agree

    def __init__(self, channels=96, side=16):
        super().__init__()
        enlarge = nn.functional.interpolate(torch.eye(8)[None], size=side, mode="linear")[0].T
        self.register_buffer("enlarge", enlarge.contiguous())                # [16, 8]
        self.register_buffer("enlarge_columns", enlarge.T.contiguous())      # [8, 16]
        self.register_buffer("step", torch.zeros(()))
        self.stem = ConvBnRelu(1, channels)
        self.field = nn.Conv2d(channels, channels, 3, padding=1)
        self.head = nn.Sequential(nn.AvgPool2d(4), nn.Flatten(), nn.Linear(channels * (side // 4) ** 2, 10))
        self.set_steps(2)

    def set_steps(self, steps):
        self.steps = steps
        self.step.fill_(self.HORIZON / steps)

    def forward(self, pixels):  # [batch, 64]
        image = pixels.reshape(-1, 1, 8, 8) * UNIT
        h = self.stem(self.enlarge @ image @ self.enlarge_columns)  # [batch, channels, 16, 16]
        for _ in range(self.steps):
            h = h + torch.relu(self.field(h)) * self.step
        return self.head(h)


class WithSoftmax(nn.Module):
    """What is exported: training wants logits, clients want probabilities."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, pixels):
        return torch.softmax(self.network(pixels), dim=-1)


def train(build, pixels, labels, epochs, rate=3e-3, batch=64):
    torch.manual_seed(SEED)
    network = build()  # its initial weights depend on SEED, not on what was built before
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=epochs * -(-len(pixels) // batch))
    pixels, labels = torch.from_numpy(pixels), torch.from_numpy(labels)
    network.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(pixels)).split(batch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(pixels[rows]), labels[rows]).backward()
            optimizer.step()
            schedule.step()
    return network.eval()


def export(network, example, path):
    """PRESERVE keeps BatchNormalization in the file, in its inference form: folding it into the Conv before it is the engine's work.

    This is the TorchScript exporter, because the newer one folds it in any case or, told not to optimise, writes a far noisier graph.
    """
    file = io.BytesIO()
    torch.onnx.export(
        WithSoftmax(network).eval(), (example,), file, dynamo=False, opset_version=OPSET,
        training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
        input_names=["pixels"], output_names=["scores"], dynamic_axes={"pixels": {0: "batch"}, "scores": {0: "batch"}})
    model = onnx.load_from_string(file.getvalue())
    strip_provenance(model)
    onnx.checker.check_model(model, full_check=True)
    data = model.SerializeToString(deterministic=True)
    if len(data) >= MAX_BYTES:
        raise SystemExit(f"{path}: {len(data)} bytes, the limit is {MAX_BYTES}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def strip_provenance(model):
    """Stack traces with this machine's paths: they differ from one checkout to the next and mean nothing to a reader of the file."""
    for holder in [model, model.graph, *model.graph.node, *model.graph.input, *model.graph.output, *model.graph.value_info,
                   *model.graph.initializer]:
        holder.ClearField("metadata_props")
        holder.ClearField("doc_string")


def report(out, versions, pixels, labels):
    """The table of models/README.md. Latency: median of single requests on one thread, after a warm-up."""
    print(f"{'version':>7} {'accuracy':>9} {'differs':>8} {'bytes':>8} {'ms':>8} {'x of 1':>7}  operators")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    stable, base_ms = None, None
    for version in versions:
        path = out / str(version) / "model.onnx"
        session = onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
        rows = pixels.reshape(-1, *session.get_inputs()[0].shape[1:])
        answers = session.run(["scores"], {"pixels": rows})[0].argmax(-1)
        stable = answers if stable is None else stable
        milliseconds = median_ms(lambda: session.run(["scores"], {"pixels": rows[:1]}))
        base_ms = base_ms or milliseconds
        operators = collections.Counter(node.op_type for node in onnx.load(path).graph.node)
        print(f"{version:>7} {(answers == labels).mean():>9.2%} {(answers != stable).mean():>8.2%} {path.stat().st_size:>8}"
              f" {milliseconds:>8.3f} {milliseconds / base_ms:>7.1f}  " + " ".join(f"{op}:{n}" for op, n in sorted(operators.items())))


def median_ms(run, seconds=1.0):
    times = []
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times[len(times) // 10:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    out = parser.parse_args().out
    torch.set_num_threads(1)  # a sum split over threads depends on their number
    torch.use_deterministic_algorithms(True)
    warnings.filterwarnings("ignore", category=DeprecationWarning)  # see export()

    digits = load_digits()
    pixels, held_pixels, labels, held_labels = train_test_split(
        digits.data.astype(np.float32), digits.target.astype(np.int64), test_size=HELD_OUT, stratify=digits.target, random_state=SEED)
    shuffled = np.random.default_rng(SEED).permutation(labels)
    out.mkdir(parents=True, exist_ok=True)
    np.savez(out / "eval.npz", pixels=held_pixels, label=held_labels)

    rows, images = torch.from_numpy(pixels[:2]), torch.from_numpy(pixels[:2]).reshape(-1, 1, 8, 8)
    cnn = train(Cnn, pixels, labels, epochs=30)
    flow = train(Flow, pixels, labels, epochs=8)
    flow.set_steps(150)
    export(train(Mlp, pixels, labels, epochs=40), rows, out / "1" / "model.onnx")
    export(cnn, rows, out / "2" / "model.onnx")
    export(train(Mlp, pixels, shuffled, epochs=40), rows, out / "3" / "model.onnx")
    export(flow, rows, out / "4" / "model.onnx")
    export(cnn.trunk, images, out / "5" / "model.onnx")
    report(out, [1, 2, 3, 4, 5], held_pixels, held_labels)


if __name__ == "__main__":
    main()
