"""What is measured: models, sizes, and the arithmetic in them. The models are recipes of tests/models, at full size, and models/digits."""

import dataclasses
import functools
import pathlib
import sys

import numpy as np
import onnx
from onnx import helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build/bench"
sys.path.insert(0, str(ROOT / "tests/models"))

import listing  # noqa: E402
from materialise import materialise  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Work:
    name: str
    model: str  # a recipe, or a file
    kind: str  # convolutions, transformers or digits: which geometric mean it belongs to
    sizes: tuple = ()  # (("seq", 128),)
    batches: tuple = (1, 8)

    @property
    def path(self):
        return materialise(self.model) if "/" not in self.model else ROOT / self.model


WORK = [
    Work("ResNet-50", "resnet50", "convolutions"),
    Work("MobileNetV3-L", "mobilenet_v3_large", "convolutions"),
    Work("EfficientNet-B0", "efficientnet_b0", "convolutions"),
    Work("ViT-B/16", "vit_b_16", "transformers"),
    Work("BERT-base seq 128", "bert_base", "transformers", (("seq", 128),)),
    Work("MiniLM seq 32", "minilm", "transformers", (("seq", 32),)),
    Work("MiniLM seq 128", "minilm", "transformers", (("seq", 128),)),
    Work("digits perceptron", "models/digits/1/model.onnx", "digits", (), (1, 32)),
    Work("digits convolutions", "models/digits/2/model.onnx", "digits", (), (1, 32)),
]


# Nets that nobody tuned for (--zoo), by the geometric mean that they belong to: architectures of tests/models as their exporters write them, most at small sizes.
ZOO_RECIPES = {
    "convolutions": """alexnet vgg11_bn resnet18 resnext50_32x4d wide_resnet50_2 squeezenet1_1 densenet121 googlenet inception_v3 shufflenet_v2_x1_0
        mobilenet_v2 mobilenet_v3_small mnasnet1_0 regnet_x_400mf regnet_y_400mf efficientnet_v2_s convnext_tiny""",
    "large convolutions": """regnet_y_1_6gf regnet_x_1_6gf convnext_tiny_224 densenet121_224 shufflenet_v2_224 mnasnet1_0_224 resnext50_224 mobilenet_v2_224""",
    "maps and boxes": "fcn_resnet50 deeplabv3 lraspp unet ssdlite yolo raft_small video_r3d_18 upscaler gan_generator autoencoder style_transfer",
    "transformers": """swin_t_224 swin_small swin_v2_small maxvit_small vit_small mlp_mixer distilbert roberta mpnet albert electra deberta gpt2 gpt2_past llama
        llama_past t5_encoder bart clip whisper_encoder wav2vec2""",
    "sequences and tables": """crnn lstm_tagger gru_tagger gru_forecaster wavenet wide_and_deep perceptron sk_forest sk_boosted sk_svm sk_perceptron""",
}  # fmt: skip
LENGTHS = {"seq": 64, "step": 16, "past": 63, "total": 64, "width": 128, "steps": 32}  # of open dimensions
SHORT = {"roberta"}  # it has positions for the listed length only


def sizes_of(entry):
    """Sizes of the open dimensions of a listed model other than that of rows."""
    lengths = {} if entry.name in SHORT else LENGTHS
    return tuple((dim, lengths.get(dim, size)) for dim, size in entry.dims.items() if dim != "batch")


@functools.cache
def zoo():
    listed = listing.entries()
    found = []
    for kind, names in ZOO_RECIPES.items():
        for name in names.split():
            found.append(Work(name, name, kind, sizes_of(listed[name]), (1, 8) if "batch" in listed[name].dims else (1,)))
    return found


@dataclasses.dataclass
class Job:
    """One model at one size on so many threads; `inputs` is a file of arrays in the order of the model's inputs."""

    model: pathlib.Path
    dims: dict
    inputs: pathlib.Path
    threads: int = 1
    precision: str = "fp32"


def job(work, batch, threads=1, precision="fp32", model=None):
    dims = {"batch": batch, **dict(work.sizes)}
    return Job(model or work.path, dims, inputs_file(work, batch), threads, precision)


@functools.cache
def inputs_file(work, batch):
    entry = listing.entries().get(work.model, listing.Entry(work.model, False, False, {}))
    session = listing.reference(work.path, optimised=False)
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{work.name.replace('/', '-').replace(' ', '-')}-{batch}.npz"
    np.savez(path, **listing.make_inputs(entry, session, {"batch": batch, **dict(work.sizes)}))
    return path


LAYERS = ("Conv", "Gemm", "MatMul")


@functools.cache
def multiply_adds(work):
    """Of one item, by running the model once and looking at the shapes of what convolutions and products read and write."""
    model = onnx.load(work.path)
    layers = [node for node in model.graph.node if node.op_type in LAYERS]
    known = {value.name for value in [*model.graph.input, *model.graph.output, *model.graph.initializer]}
    wanted = {node.output[0] for node in layers} | {node.input[1] for node in layers} - {tensor.name for tensor in model.graph.initializer}
    for name in sorted(wanted - known):
        model.graph.output.append(helper.make_empty_tensor_value_info(name))
    shapes = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    session = listing.reference(model.SerializeToString(), optimised=False)
    names = [output.name for output in session.get_outputs()]
    shapes |= {name: list(value.shape) for name, value in zip(names, session.run(names, dict(np.load(inputs_file(work, 1)))))}
    total = 0
    for node in layers:
        weight, result = shapes[node.input[1]], shapes[node.output[0]]
        if node.op_type == "Conv":
            inner = int(np.prod(weight[1:]))
        else:
            transposed = any(a.name == "transB" and a.i for a in node.attribute)
            inner = weight[-1] if transposed else weight[-2] if len(weight) > 1 else weight[0]
        total += int(np.prod(result)) * inner
    return total
