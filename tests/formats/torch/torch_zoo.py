"""The models: those of tests/models/zoo, taken before their export to ONNX, at the sizes of tests/models.txt.

Outputs that would fill the repository are thinned: a slice of every fourth or so pixel behind the network.
"""

import torch
from zoo import dense, exporters, sequence, text, vision

import listing
from torch_layers import LAYERS, make_layer

#                 name: every n-th element along the last two axes of each output of rank 4
THINNED = {"raft_small": 8, "fcn_resnet50": 8, "deeplabv3": 8, "lraspp": 12, "unet": 8, "upscaler": 12, "gan_generator": 8, "autoencoder": 4, "style_transfer": 6, "segformer": 4}
MAKERS = {**vision.MODELS, **dense.MODELS, **text.MODELS, **sequence.MODELS}


LANGUAGE = {"vocab_size": 128, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "pad_token_id": 0}
VISION = {"image_size": 32, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
STAGES = {"hidden_sizes": [8, 16, 32, 64], "depths": [1, 1, 1, 1]}

#        name: (class, configuration class, configuration, {input: (shape, type, kind, open axes)})
TOKENS = {"input_ids": ([2, 10], torch.int64, "<128", {0: "batch", 1: "seq"})}
PIXELS = {"pixel_values": ([2, 3, 32, 32], torch.float32, "", {0: "batch"})}
LARGER_PIXELS = {"pixel_values": ([2, 3, 64, 64], torch.float32, "", {0: "batch"})}
OTHERS = {
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", LANGUAGE | {"num_key_value_heads": 2}, TOKENS),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", LANGUAGE | {"num_key_value_heads": 2, "head_dim": 8}, TOKENS),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", LANGUAGE, TOKENS),
    "falcon": ("FalconForCausalLM", "FalconConfig", LANGUAGE, TOKENS),
    "bloom": ("BloomForCausalLM", "BloomConfig", LANGUAGE | {"n_head": 4, "n_layer": 2}, TOKENS),
    "modernbert": ("ModernBertModel", "ModernBertConfig", LANGUAGE | {"cls_token_id": 1, "sep_token_id": 2}, TOKENS),
    "mamba": ("MambaForCausalLM", "MambaConfig", LANGUAGE, TOKENS),
    "beit": ("BeitModel", "BeitConfig", VISION, PIXELS),
    "dinov2": ("Dinov2Model", "Dinov2Config", VISION, PIXELS),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", STAGES | {"num_attention_heads": [1, 2, 4, 8], "decoder_hidden_size": 32}, LARGER_PIXELS),
    "convnextv2": ("ConvNextV2Model", "ConvNextV2Config", STAGES, LARGER_PIXELS),
}


def first_output(module, *inputs):
    names = TOKENS if inputs[0].dtype == torch.int64 else PIXELS
    return module(**dict(zip(names, inputs)), return_dict=True)[0]


def make_other(name):
    import transformers

    model, config, settings, inputs = OTHERS[name]
    settings = {key: value for key, value in settings.items() if key != "pad_token_id" or name not in ("mamba",)}
    settings = getattr(transformers, config)(**settings)
    settings.use_cache = False
    module = exporters.Wrapped(getattr(transformers, model)(settings).eval(), first_output)
    examples = {key: torch.zeros(shape, dtype=dtype) for key, (shape, dtype, *_) in inputs.items()}
    dynamic = {key: axes for key, (*_, axes) in inputs.items()}
    return module, examples, dynamic, {"batch": 2, "seq": 10}, {key: kind for key, (_, _, kind, _) in inputs.items()}


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
    if name in LAYERS:
        torch.manual_seed(1)
        return make_layer(name)
    if name in OTHERS:
        torch.manual_seed(1)
        module, examples, dynamic, dims, kinds = make_other(name)
        with torch.no_grad():
            exporters.move(module)
        return with_names(module, examples, THINNED.get(name)), examples, dynamic, dims, kinds
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
