"""A framework in a process of its own, kept warm: exports a model, or runs it.

    formats_peer.py paddle|tensorflow|torch NAME FOLDER --export
    formats_peer.py paddle|tensorflow|torch NAME FOLDER --batch N --threads N --seconds S

Prints one JSON object after the first answer, then one for each line on standard input: the median of single runs, and the most memory held so far.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import sys
import time

os.environ.update(GLOG_minloglevel="3", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
ROOT = pathlib.Path(__file__).resolve().parents[1]
IMAGE, TOKENS = ([3, 224, 224], "float32"), ([128], "int64")
WORDS, WIDTH, HEADS, LAYERS = 30_000, 256, 4, 4  # of the encoders


def drawn(batch, dims, dtype):
    import numpy as np

    random = np.random.default_rng(1)
    if dtype == "float32":
        return random.standard_normal((batch, *dims), np.float32)
    return random.integers(0, 2, (batch, *dims)).astype(dtype)


class Paddle:
    """A DB detector is missing: with oneDNN on, Paddle 3.3.1 cannot run it."""

    def __init__(self, name):
        self.name = name
        self.inputs = {"crnn": [([3, 32, 320], "float32")], "bert": [TOKENS] * 3}.get(name, [IMAGE])

    def model(self):
        sys.path[:0] = [str(ROOT / path) for path in ("tests/formats/paddle", "tests/formats", "tests/models")]
        import zoo_detection
        import zoo_sequence
        from paddle.vision import models

        if self.name == "crnn":
            return zoo_detection.Crnn(16)
        if self.name == "bert":
            return zoo_sequence.Bert(width=WIDTH, length=128)
        return getattr(models, {"shufflenet_v2": "shufflenet_v2_x1_0"}.get(self.name, self.name))()

    def export(self, folder):
        import paddle

        paddle.seed(1)
        net = self.model()
        net.eval()
        spec = [paddle.static.InputSpec([None, *dims], dtype, f"x{i}") for i, (dims, dtype) in enumerate(self.inputs)]
        paddle.jit.save(net, str(folder / "inference"), input_spec=spec)

    def runner(self, folder, batch, threads):
        from paddle import inference

        config = inference.Config(str(folder / "inference.json"), str(folder / "inference.pdiparams"))
        config.disable_gpu()
        config.enable_mkldnn()
        config.set_cpu_math_library_num_threads(threads)
        config.disable_glog_info()
        predictor = inference.create_predictor(config)
        for name, (dims, dtype) in zip(predictor.get_input_names(), self.inputs):
            predictor.get_input_handle(name).copy_from_cpu(drawn(batch, dims, dtype))
        return predictor.run


class TensorFlow:
    def __init__(self, name):
        self.name = name
        self.inputs = {"bert": {"ids": ([128], "int32"), "mask": ([128], "int32")}, "lstm": {"x": ([64, 128], "float32")}}.get(
            name, {"x": ([224, 224, 3], "float32")})

    def model(self):
        import keras
        from keras import layers

        nodes = {name: keras.Input(dims, dtype=dtype, name=name) for name, (dims, dtype) in self.inputs.items()}
        if self.name == "lstm":
            h = layers.LSTM(256)(layers.LSTM(256, return_sequences=True)(nodes["x"]))
        elif self.name == "bert":
            seen = keras.ops.cast(nodes["mask"], "bool")[:, None, :]
            h = layers.Embedding(WORDS, WIDTH)(nodes["ids"])
            for _ in range(LAYERS):
                h = layers.LayerNormalization(epsilon=1e-6)(h + layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(h, h, attention_mask=seen))
                h = layers.LayerNormalization(epsilon=1e-6)(h + layers.Dense(WIDTH)(layers.Dense(4 * WIDTH, activation="gelu")(h)))
        else:
            names = {"resnet50": "ResNet50", "mobilenet_v3_large": "MobileNetV3Large", "efficientnet_b0": "EfficientNetB0", "densenet121": "DenseNet121"}
            h = getattr(keras.applications, names[self.name])(weights=None, input_tensor=nodes["x"]).output
        return keras.Model(nodes, layers.Dense(8)(h) if self.name in ("lstm", "bert") else h)

    def export(self, folder):
        import keras

        keras.utils.set_random_seed(1)
        self.model().export(str(folder), verbose=False)

    def runner(self, folder, batch, threads):
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        loaded = tf.saved_model.load(str(folder))
        inputs = {name: tf.constant(drawn(batch, dims, dtype)) for name, (dims, dtype) in self.inputs.items()}
        signature = loaded.signatures["serving_default"]

        def run():
            return [value.numpy() for value in signature(**inputs).values()], loaded

        return run


class Torch:
    def __init__(self, name):
        self.name = name
        self.inputs = [TOKENS, TOKENS] if name == "bert" else [IMAGE]

    def model(self):
        import torch

        torch.manual_seed(1)
        if self.name == "bert":
            from transformers import BertConfig, BertModel

            config = BertConfig(vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=4 * WIDTH)
            return BertModel(config).eval()
        import torchvision

        return torchvision.models.get_model({"shufflenet_v2": "shufflenet_v2_x1_0"}.get(self.name, self.name), weights=None).eval()

    def export(self, folder):
        import torch

        folder.mkdir(parents=True)
        inputs = tuple(torch.from_numpy(drawn(2, dims, dtype)) for dims, dtype in self.inputs)
        dims = tuple({0: torch.export.Dim("batch", max=64)} for _ in inputs)
        model = self.model()
        if self.name == "bert":
            dims = {"input_ids": dims[0], "attention_mask": dims[1]}
        torch.export.save(torch.export.export(model, inputs, dynamic_shapes=dims), str(folder / "model.pt2"))

    def runner(self, _folder, batch, threads):
        import torch
        from torch._inductor import config

        torch.set_num_threads(threads)
        config.freezing = True
        program = torch.compile(self.model(), dynamic=False)  # the exported one cannot be loaded where its outputs are a class of transformers
        inputs = [torch.from_numpy(drawn(batch, dims, dtype)) for dims, dtype in self.inputs]

        def run():
            with torch.no_grad():
                return program(*inputs)

        return run


def serve(run, seconds):
    """The first answer, then a measurement for each line."""

    def figures():
        times, end = [], time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        return {"median_ms": statistics.median(times) * 1000, "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}

    run()
    print(json.dumps({"first": True}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(figures()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", choices=["paddle", "tensorflow", "torch"])
    parser.add_argument("name")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--export", action="store_true")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    peer = {"paddle": Paddle, "tensorflow": TensorFlow, "torch": Torch}[options.framework](options.name)
    if options.export:
        partial = options.folder.with_name(options.folder.name + ".partial")
        peer.export(partial)
        partial.rename(options.folder)
    else:
        serve(peer.runner(options.folder, options.batch, options.threads), options.seconds)


if __name__ == "__main__":
    main()
