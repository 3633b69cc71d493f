"""The two ways out of torch, each giving an onnx.ModelProto.

torchscript() is the tracer that most files in the field came from, dynamo() the newer one. Both keep BatchNormalization where the exporter
lets them: folding it is the engine's work, and the calibration needs the statistics apart from the weights.
"""

import io
import warnings

import onnx
import torch

torch.backends.mha.set_fastpath_enabled(False)  # one operator for a whole attention, which neither exporter knows


class Wrapped(torch.nn.Module):
    """A module whose forward is a function of tensors: what an export takes."""

    def __init__(self, module, forward):
        super().__init__()
        self.module, self.call = module, forward

    def forward(self, *tensors):
        return self.call(self.module, *tensors)


CONSTANTS = ((0.0, 5e-7, (-0.2, 0.2)), (1.0, 1.0, (0.7, 1.3)), (5e-7, 1e-3, (0.3, 0.7)))  # from, to; drawn instead


def move(module):
    """Draws anew what is initialised to a constant, which training would have moved: biases of zeros, gains of ones, LayerScale's 1e-6.
    A branch that starts at zero would hide every fault in it, and the tracer merges tensors that are equal."""
    for tensor in [*module.parameters(), *(b for name, b in module.named_buffers() if "running_" in name)]:
        if tensor.numel() > 1 and tensor.is_floating_point() and tensor.max() - tensor.min() < 1e-4:
            for low, high, span in CONSTANTS:
                if low <= abs(float(tensor.mean())) <= high:
                    tensor.uniform_(*span)
                    break
    for norm in module.modules():
        if isinstance(norm, torch.nn.modules.batchnorm._BatchNorm) and norm.affine:
            norm.bias.uniform_(0.5, 1.5)  # activations are nearly linear there: around zero, 50 layers amplify rounding a thousand times
    return module.eval()


def torchscript(module, inputs, outputs, dynamic, opset, fold=True):
    """inputs: {name: example}; dynamic: {input or output name: {axis: symbol}}."""
    file = io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            move(module),
            tuple(inputs.values()),
            file,
            dynamo=False,
            opset_version=opset,
            input_names=list(inputs),
            output_names=outputs,
            dynamic_axes=dynamic,
            do_constant_folding=fold,
            training=torch.onnx.TrainingMode.PRESERVE,
        )
    return onnx.load_from_string(file.getvalue())


def dynamo(module, inputs, outputs, dynamic, opset):
    """dynamic: {input name: {axis: symbol}}, one entry for each input that has any."""
    shapes = tuple(
        {axis: torch.export.Dim(symbol, min=1, max=1 << 16) for axis, symbol in dynamic.get(name, {}).items()} for name in inputs
    )
    if isinstance(module, Wrapped):
        shapes = (shapes,)  # *tensors is one argument to the exporter
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            move(module),
            tuple(inputs.values()),
            dynamo=True,
            opset_version=opset,
            input_names=list(inputs),
            output_names=outputs,
            dynamic_shapes=shapes,
            verbose=False,
        )
    return program.model_proto
