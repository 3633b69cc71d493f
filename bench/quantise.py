"""The int8 models that are measured: ONNX Runtime's quantisers on the fp32 ones, as its users make them. Made once, in build/bench."""

import onnx

import work  # puts tests/models, where zoo is, on the path
from zoo import quantised

ACTIVATIONS = {"u8s8": quantised.U8, "s8s8": quantised.S8, "u8s7": quantised.U8}


def int8(source, kind):
    """The file of a Work's model in int8: QDQ with u8 or s8 activations and weights s8 per channel, or with dynamic ranges; u8s7: with weights of seven bits."""
    path = work.FOLDER / f"{source.model}-{kind}.onnx"
    if path.exists() and path.stat().st_mtime > source.path.stat().st_mtime:
        return path
    work.FOLDER.mkdir(parents=True, exist_ok=True)
    if kind == "dynamic":
        model = quantised.dynamic(source.model)
    else:
        model = quantised.static(source.model, ACTIVATIONS[kind], quantised.S8, samples=4, per_channel=True, reduce_range=kind == "u8s7")
    onnx.save(model, path)
    return path
