"""The int8 models that are measured: ONNX Runtime's quantisers on the fp32 ones, as its users make them. Made once, in build/bench."""

import pathlib
import tempfile

from onnxruntime import quantization as q
from onnxruntime.quantization.shape_inference import quant_pre_process

import work

KINDS = ("u8s8", "s8s8", "dynamic")


class Samples(q.CalibrationDataReader):
    def __init__(self, source, count=4):
        entry = work.listing.entries()[source.model]
        session = work.listing.reference(source.path, optimised=False)
        sizes = dict(source.sizes)
        self.rows = iter([work.listing.make_inputs(entry, session, sizes, seed=f"calibration {i}") for i in range(count)])

    def get_next(self):
        return next(self.rows, None)


def int8(source, kind):
    """The file of a Work's model in int8: QDQ with u8 or s8 activations and weights s8 per channel, or with dynamic ranges."""
    path = work.FOLDER / f"{source.model}-{kind}.onnx"
    if path.exists() and path.stat().st_mtime > source.path.stat().st_mtime:
        return path
    work.FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        prepared, aside = pathlib.Path(folder) / "prepared.onnx", pathlib.Path(folder) / "out.onnx"
        quant_pre_process(str(source.path), str(prepared), skip_symbolic_shape=True)
        if kind == "dynamic":
            q.quantize_dynamic(prepared, aside, weight_type=q.QuantType.QInt8)
        else:
            activations = q.QuantType.QUInt8 if kind == "u8s8" else q.QuantType.QInt8
            q.quantize_static(
                prepared, aside, Samples(source), activation_type=activations, weight_type=q.QuantType.QInt8, per_channel=True
            )
        path.write_bytes(aside.read_bytes())
    return path
