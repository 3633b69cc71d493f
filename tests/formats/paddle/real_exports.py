"""Exports the architectures of PaddleClas, PaddleSeg and PaddleDetection themselves, and compares Serin's answers with those of paddle.inference.

    python3 -m venv venv && venv/bin/pip install -r deploy/requirements-paddle.txt
    venv/bin/pip install --no-deps paddleclas==2.6.0 paddleseg==2.8.0
    venv/bin/pip install scikit-learn opencv-python-headless pyyaml tqdm scipy pycocotools shapely matplotlib visualdl easydict faiss-cpu prettytable typeguard terminaltables pandas numba
    venv/bin/python tests/formats/paddle/real_exports.py clas [NAME...]
    venv/bin/python tests/formats/paddle/real_exports.py seg [NAME...] [--open]
    venv/bin/python tests/formats/paddle/real_exports.py det --checkout PADDLEDETECTION CONFIG...    such as rtdetr/rtdetr_r18vd_6x_coco.yml

Weights are drawn. Each model has a process of its own and one line of output: `ok` and the shapes of its answers, or the reason. `EXPORT` says that Paddle could not
export or run it. `--open`: height and width are open. Deep networks with drawn weights enlarge the last bits of floats, so that a detector may order two boxes
otherwise: such a line is read by a person. No test runs this script.
"""

import argparse
import importlib.util
import inspect
import logging
import os
import pathlib
import shutil
import sys
import tempfile
import types
import warnings

os.environ.setdefault("GLOG_minloglevel", "3")
warnings.simplefilter("ignore")
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "models")]

import numpy as np  # noqa: E402 (after the path)
import paddle  # noqa: E402
import stored  # noqa: E402
from paddle import inference  # noqa: E402

SMALL = ("delta", "bbox_pred", "bbox_reg")  # regressions of boxes, which would leave the image


def draw(net, products):
    """Statistics of normalisations, and with `products` the weights of convolutions and products, too: heads of detectors start with none that count."""
    random = np.random.default_rng(1)
    for name, layer in net.named_sublayers():
        weight = getattr(layer, "weight", None)
        if hasattr(layer, "_mean") and hasattr(layer, "_variance"):
            size = layer._mean.shape[0]
            layer._mean.set_value(random.uniform(-0.2, 0.2, size).astype("float32"))
            layer._variance.set_value(random.uniform(0.7, 1.5, size).astype("float32"))
        elif products and weight is not None and weight.ndim in (2, 4):
            fan = int(np.prod(weight.shape[1:])) if weight.ndim == 4 else weight.shape[0]
            scale = (1.6 / fan) ** 0.5 * (0.05 if any(word in name for word in SMALL) else 1)
            weight.set_value((random.standard_normal(weight.shape) * scale).astype("float32"))


class Differs(Exception):
    """Serin cannot load the model, or answers otherwise: no fault of the export."""


def compare(folder, inputs):
    """Of the model in the folder; `inputs` by name."""
    config = inference.Config(str(folder / "model.json"), str(folder / "model.pdiparams"))
    config.disable_gpu()
    config.disable_mkldnn()
    config.switch_ir_optim(False)
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    ordered = [inputs[name] for name in predictor.get_input_names()]
    for name, value in zip(predictor.get_input_names(), ordered):
        predictor.get_input_handle(name).copy_from_cpu(value)
    predictor.run()
    outputs = [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]
    done = stored.check(folder / "model.json", stored.write_data_set(folder / "data", ordered, outputs))
    if done.returncode != 0:
        raise Differs((done.stdout + done.stderr)[-2000:])
    return " ".join(f"{list(value.shape)}" for value in outputs)


def image(batch, height, width):
    return np.random.default_rng(2).standard_normal((batch, 3, height, width)).astype("float32")


def classifiers():
    """{name: what makes it} of all, and the names of the first in each file of PaddleClas."""
    sys.path.insert(0, str(pathlib.Path(importlib.util.find_spec("paddleclas").origin).parent))
    import ppcls.arch.backbone as backbones
    from ppcls.utils import logger

    logger.init_logger(log_file=None)
    made = {name: make for name, make in inspect.getmembers(backbones, inspect.isfunction) if make.__module__.startswith("ppcls.arch.backbone.")}
    first = {}
    for name, make in made.items():
        first.setdefault(make.__module__, name)
    return made, list(first.values())


def run_classifier(make, name, folder):
    parameters = inspect.signature(make).parameters.values()
    classes = {"class_num": 10} if any(each.name == "class_num" or each.kind == each.VAR_KEYWORD for each in parameters) else {}
    size = next((size for size in (384, 256) if str(size) in name), 224)
    net = make(**classes)
    return export(net, [paddle.static.InputSpec([None, 3, size, size], "float32", "x")], folder, {"x": image(2, size, size)})


def segmenters():
    import paddleseg.models as models
    from paddleseg.models import backbones

    deep = {"backbone": lambda: backbones.ResNet50_vd(output_stride=8)}
    wide = {"backbone": lambda: backbones.HRNet_W18()}
    small = {"backbone": lambda: backbones.STDC1()}
    described = {
        "UNet": {}, "AttentionUNet": {}, "BiSeNetV2": {}, "FastSCNN": {}, "HarDNet": {}, "ENet": {}, "ESPNetV2": {}, "PPLiteSeg": small, "STDCSeg": small, "DeepLabV3P": deep,
        "PSPNet": deep, "ANN": deep, "EMANet": deep, "DNLNet": deep, "GCNet": deep, "GloRe": deep, "OCRNet": {**wide, "backbone_indices": [0]},
        "FCN": {**wide, "backbone_indices": [-1]}, "SegFormer": {"backbone": lambda: backbones.MixVisionTransformer_B0(), "embedding_dim": 256},
        "TopFormer": {"backbone": lambda: backbones.TopTransformer_Tiny()},
    }  # fmt: skip

    def maker(name, arguments):
        return lambda: getattr(models, name)(num_classes=5, **{key: value() if callable(value) else value for key, value in arguments.items()})

    return {name: maker(name, arguments) for name, arguments in described.items()}


class FirstResult(paddle.nn.Layer):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        result = self.net(x)
        return result[0] if isinstance(result, (list, tuple)) else result


def run_segmenter(make, folder, is_open):
    size = [None, None] if is_open else [128, 256]
    return export(FirstResult(make()), [paddle.static.InputSpec([None, 3, *size], "float32", "x")], folder, {"x": image(2, 128, 256)})


def export(net, spec, folder, inputs, products=False):
    net.eval()
    draw(net, products)
    paddle.jit.save(net, str(folder / "model"), input_spec=spec)
    return compare(folder, inputs)


class Anything(types.ModuleType):
    """Modules that PaddleDetection imports for its data and never calls here."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def run_detector(config, checkout, folder):
    for name in ("imgaug", "imgaug.augmentables", "imgaug.augmentables.lines", "imgaug.augmentables.segmaps", "imgaug.augmenters", "lap", "motmetrics"):
        sys.modules.setdefault(name, Anything(name))
    from ppdet.core import workspace

    loaded = workspace.load_config(str(checkout / "configs" / config))
    loaded["pretrain_weights"] = None
    try:
        height, width = loaded["TestReader"]["inputs_def"]["image_shape"][-2:]
    except (KeyError, TypeError):
        height = width = -1
    height, width = (height, width) if height > 0 and width > 0 else (320, 320)
    inputs = {"image": image(1, height, width), "im_shape": np.array([[height, width]], "float32"), "scale_factor": np.ones((1, 2), "float32")}
    for unused in ((), ("im_shape",), ("im_shape", "scale_factor"), ("scale_factor",)):
        paddle.seed(1)
        net = workspace.create(loaded.architecture)
        for layer in net.sublayers():
            if hasattr(layer, "convert_to_deploy"):
                layer.convert_to_deploy()
        spec = {name: paddle.static.InputSpec([None, *value.shape[1:]], "float32", name) for name, value in inputs.items() if name not in unused}
        net.eval()
        draw(net, products=True)
        try:
            paddle.jit.save(paddle.jit.to_static(net, input_spec=[spec]), str(folder / "model"))
            return compare(folder, inputs)
        except ValueError as error:
            if "feed_var" not in str(error):  # an input that this detector does not read
                raise
    raise ValueError("reads none of the inputs")


def report(run):
    """The line of one model, from a process of its own: a network leaves names of parameters behind."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitpid(child, 0)
    logging.disable(logging.CRITICAL)
    paddle.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        try:
            line = "ok     " + run(pathlib.Path(folder))
        except Differs as error:
            line = "FAIL   " + str(error)
        except BaseException as error:  # whatever Paddle throws
            line = f"EXPORT {type(error).__name__}: {str(error).strip()[-200:]}"
        print(" | ".join(line.splitlines()), flush=True)
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", choices=["clas", "seg", "det"])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--checkout", type=pathlib.Path)
    options = parser.parse_intermixed_args()
    usual = None
    if options.project == "det":
        if not options.checkout or not options.names:
            parser.error("det needs --checkout and a file below its configs/")
        sys.path.insert(0, str(options.checkout))
        runs = {name: lambda folder, name=name: run_detector(name, options.checkout, folder) for name in options.names}
    elif options.project == "seg":
        runs = {name: lambda folder, make=make: run_segmenter(make, folder, options.open) for name, make in segmenters().items()}
    else:
        made, usual = classifiers()
        runs = {name: lambda folder, name=name, make=make: run_classifier(make, name, folder) for name, make in made.items()}
    if unknown := set(options.names) - runs.keys():
        parser.error(f"no model is named {', '.join(sorted(unknown))}; there are {', '.join(runs)}")
    for name in options.names or usual or runs:
        print(f"{name:35} ", end="")
        report(runs[name])


if __name__ == "__main__":
    main()
