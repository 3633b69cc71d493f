"""The models: those of tests/models/zoo, taken before their export to ONNX, at the sizes of tests/models.txt.

Outputs that would fill the repository are thinned: a slice of every fourth or so pixel behind the network.
"""

import torch
from zoo import dense, exporters, sequence, text, vision

import listing

#                 name: every n-th element along the last two axes of each output of rank 4
THINNED = {"raft_small": 8, "fcn_resnet50": 8, "deeplabv3": 8, "lraspp": 12, "unet": 8, "upscaler": 12, "gan_generator": 8, "autoencoder": 4, "style_transfer": 6}
MAKERS = {**vision.MODELS, **dense.MODELS, **text.MODELS, **sequence.MODELS}


class Captured(Exception):
    """Carries the arguments of an export that does not happen."""


def capture(module, inputs, _outputs, dynamic, _opset, fold=True):  # noqa: ARG001
    raise Captured(module, inputs, dynamic)


def thin(value, step):
    if isinstance(value, torch.Tensor):
        return value[..., ::step, ::step] if value.dim() == 4 else value
    if isinstance(value, dict):
        return {key: thin(each, step) for key, each in value.items()}
    return type(value)(thin(each, step) for each in value) if isinstance(value, (tuple, list)) else value


def with_names(module, inputs, step):
    """A module whose forward names its inputs."""
    names = ", ".join(inputs)
    space = {"thin": thin}
    body = f"self.call(self.module, {names})" if isinstance(module, exporters.Wrapped) else f"self.module({names})"
    exec(f"def forward(self, {names}):\n    return {f'thin({body}, {step})' if step else body}", space)  # noqa: S102
    named = type("Named", (torch.nn.Module,), {"forward": space["forward"]})()
    named.module = module.module if isinstance(module, exporters.Wrapped) else module
    named.call = getattr(module, "call", None)
    return named.eval()


def make(name):
    """(module, {input: example}, {input: {axis: symbol}}, {symbol: size}, {input: kind})"""
    for part in (vision, dense, text, sequence):
        part.torchscript = part.dynamo = capture
        for maker in vars(part).values():  # defaults are bound where a function is defined
            if callable(maker) and getattr(maker, "__defaults__", None):
                maker.__defaults__ = tuple(capture if each in (exporters.torchscript, exporters.dynamo) else each for each in maker.__defaults__)
    torch.manual_seed(1)
    try:
        MAKERS[name]()
    except Captured as captured:
        module, inputs, dynamic = captured.args
    entry = listing.entries()[name]
    with torch.no_grad():
        exporters.move(module)
    return with_names(module, inputs, THINNED.get(name)), inputs, dynamic, entry.dims, entry.inputs
