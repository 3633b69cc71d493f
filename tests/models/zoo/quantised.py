"""What ONNX Runtime's quantisers, its optimiser and its converter to 16-bit floats write, made out of the models that are already here."""

import pathlib
import tempfile

import onnx
import onnxruntime
from onnxruntime import quantization as q
from onnxruntime.quantization.shape_inference import quant_pre_process

import listing
from materialise import materialise


class Samples(q.CalibrationDataReader):
    """Seeded inputs, by which the ranges of activations are chosen."""

    def __init__(self, path, entry, count):
        session = listing.reference(path, optimised=False)
        self.rows = iter([listing.make_inputs(entry, session, seed=f"calibration {i}") for i in range(count)])

    def get_next(self):
        return next(self.rows, None)


def base(name, folder):
    """A listed model as a quantiser wants it: BatchNormalization folded, shapes inferred."""
    prepared = pathlib.Path(folder) / "prepared.onnx"
    quant_pre_process(str(materialise(name)), str(prepared), skip_symbolic_shape=True)
    return prepared


def static(name, activations, weights, form=q.QuantFormat.QDQ, samples=8, **options):
    with tempfile.TemporaryDirectory() as folder:
        prepared, out = base(name, folder), pathlib.Path(folder) / "out.onnx"
        q.quantize_static(
            prepared,
            out,
            Samples(prepared, listing.entries()[name], samples),
            quant_format=form,
            activation_type=activations,
            weight_type=weights,
            **options,
        )
        return onnx.load(out)


def dynamic(name):
    with tempfile.TemporaryDirectory() as folder:
        prepared, out = base(name, folder), pathlib.Path(folder) / "out.onnx"
        q.quantize_dynamic(prepared, out, weight_type=q.QuantType.QInt8)
        return onnx.load(out)


def four_bits(name):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load(materialise(name)), block_size=32, is_symmetric=False)
    quantizer.process()
    return quantizer.model.model


def optimised(name):
    """The graph after ONNX Runtime's extended rewrites: fused operators of the domain com.microsoft."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.onnx"
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(out)
        onnxruntime.InferenceSession(str(materialise(name)), options, providers=["CPUExecutionProvider"])
        return onnx.load(out)


def transformer_fused(name, kind, heads, width):
    """The graph after ONNX Runtime's offline optimiser for transformers."""
    from onnxruntime.transformers import optimizer

    fused = optimizer.optimize_model(str(materialise(name)), kind, num_heads=heads, hidden_size=width, opt_level=0)
    with tempfile.TemporaryDirectory() as folder:
        fused.save_model_to_file(folder + "/out.onnx")  # which also imports com.microsoft
        return onnx.load(folder + "/out.onnx")


def transformer_fused_dynamic(name, kind, heads, width):
    """The offline optimiser's graph, quantised: what becomes of Attention and the embeddings."""
    with tempfile.TemporaryDirectory() as folder:
        fused, out = pathlib.Path(folder) / "fused.onnx", pathlib.Path(folder) / "out.onnx"
        onnx.save(transformer_fused(name, kind, heads, width), fused)
        # Shape inference does not know com.microsoft: the quantiser must be told what it would not find out.
        q.quantize_dynamic(fused, out, weight_type=q.QuantType.QUInt8, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
        return onnx.load(out)


def halves(name):
    """All floats f16, the inputs and outputs among them."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    return convert_float_to_float16(onnx.load(materialise(name)))


U8, S8 = q.QuantType.QUInt8, q.QuantType.QInt8
MADE_BY = {  # name: the model it is made of, and how
    "resnet18_u8s8": ("resnet18", lambda base: static(base, U8, S8, per_channel=True)),
    "resnet18_s8s8": ("resnet18", lambda base: static(base, S8, S8, per_channel=True)),
    "mobilenet_v2_u8u8": ("mobilenet_v2", lambda base: static(base, U8, U8, q.QuantFormat.QOperator)),
    "yolo_u8s8": ("yolo", lambda base: static(base, U8, S8, per_channel=True)),
    "bert_tiny_u8s8": ("bert_tiny_sdpa", lambda base: static(base, U8, S8)),
    "bert_tiny_dynamic": ("bert_tiny_sdpa", dynamic),
    "lstm_tagger_dynamic": ("lstm_tagger", dynamic),
    "gpt2_four_bits": ("gpt2", four_bits),
    "resnet18_fused": ("resnet18", optimised),
    "bert_tiny_fused": ("bert_tiny_sdpa", lambda base: transformer_fused(base, "bert", 4, 64)),
    "bert_tiny_fused_dynamic": ("bert_tiny", lambda base: transformer_fused_dynamic(base, "bert", 4, 64)),
    "gpt2_fused": ("gpt2", lambda base: transformer_fused(base, "gpt2", 4, 64)),
    "vit_small_fused": ("vit_small", optimised),
    "resnet18_f16": ("resnet18_dynamo", halves),
    "bert_tiny_f16": ("bert_tiny_sdpa", halves),
}
BASES = {name: base for name, (base, _) in MADE_BY.items()}
MODELS = {name: lambda base=base, make=make: make(base) for name, (base, make) in MADE_BY.items()}
