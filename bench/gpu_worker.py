"""A peer on a GPU in a process of its own, kept warm: PyTorch compiled, or ONNX Runtime's CUDA provider. Speaks as worker.py does.

    gpu_worker.py ENGINE MODEL INPUTS.npz --name NAME [--precision fp32] [--seconds 0.2]
    gpu_worker.py peaks                       # one JSON object: what the card gives at most, as torch measures it

A run is what `serin bench` times: inputs in the host's memory go to the device, outputs come back. Each peer at its best: shapes fixed,
NHWC and CUDA graphs, pinned memory, 16-bit floats where asked for; in fp32 no TF32, as Serin's.
"""

import argparse
import json
import statistics
import sys
import time

import numpy as np

from worker import median_ms, memory

MODES = {"torch-reduce-overhead": "reduce-overhead", "torch-max-autotune": "max-autotune"}


def module_of(name):
    """What the recipe of this name was exported from (tests/models/zoo), with weights as torch draws them: speed does not see them."""
    if name in ("bert_base", "minilm"):
        import transformers as hf

        small = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
        return hf.BertModel(hf.BertConfig(**(small if name == "minilm" else {})))
    import torchvision.models

    return getattr(torchvision.models, name)(weights=None)


class Torch:
    def __init__(self, mode, name, inputs, precision, device="cuda"):
        import torch

        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.manual_seed(1)
        self.torch, self.device = torch, device
        images = name not in ("bert_base", "minilm")
        layout = torch.channels_last if images else torch.preserve_format
        half = precision == "fp16"
        module = module_of(name).eval().to(device, torch.float16 if half else torch.float32, memory_format=layout)

        def forward(*tensors):
            tensors = [tensor.half() if half and tensor.is_floating_point() else tensor for tensor in tensors]
            answer = module(*tensors) if images else pooled(module(*tensors), tensors[1], name)
            return answer.float()

        self.forward = torch.compile(forward, mode=mode, dynamic=False)
        self.host = [self.pinned(torch.from_numpy(value)) for value in inputs.values()]
        self.inputs = [value.to(device) for value in self.host]
        if images:
            self.inputs = [value.contiguous(memory_format=layout) for value in self.inputs]
        for value in self.inputs:
            torch._dynamo.mark_static_address(value)  # filled in place: CUDA graphs need no copy of it
        with torch.inference_mode():
            for _ in range(3):  # compiles, warms up, records
                answer = self.forward(*self.inputs)
            self.output = self.pinned(torch.empty(answer.shape))

    def pinned(self, tensor):
        return tensor.pin_memory() if self.device == "cuda" else tensor

    def run(self):
        with self.torch.inference_mode():
            for value, host in zip(self.inputs, self.host):
                value.copy_(host, non_blocking=True)
            self.output.copy_(self.forward(*self.inputs), non_blocking=True)
            if self.device == "cuda":
                self.torch.cuda.synchronize()


def pooled(answer, mask, name):
    """MiniLM's export ends with the mean over tokens, normalised; BERT's with its pooled answer."""
    if name == "bert_base":
        return answer[1]
    weights = mask.unsqueeze(-1).to(answer[0].dtype)
    mean = (answer[0] * weights).sum(1) / weights.sum(1)
    return mean / mean.norm(dim=-1, keepdim=True)


class OnnxRuntime:
    def __init__(self, model, inputs, precision):
        import onnxruntime

        if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
            sys.exit(f"ONNX Runtime {onnxruntime.__version__} here has no CUDA provider")
        options = {"enable_cuda_graph": "1", "use_tf32": "0", "prefer_nhwc": "1", "cudnn_conv_algo_search": "EXHAUSTIVE"}
        self.session = onnxruntime.InferenceSession(in_precision(model, precision), providers=[("CUDAExecutionProvider", options)])
        self.binding, self.held = self.session.io_binding(), []
        for name, value in inputs.items():
            on_device = onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", 0)
            self.binding.bind_ortvalue_input(name, on_device)
            self.held.append((on_device, value))
        for tensor in self.session.get_outputs():
            self.binding.bind_output(tensor.name, "cuda")
        self.session.run_with_iobinding(self.binding)  # finds the outputs' shapes, which a graph needs to stay where they are
        for tensor, value in zip(self.session.get_outputs(), self.binding.get_outputs()):
            self.binding.bind_ortvalue_output(tensor.name, value)

    def run(self):
        for on_device, value in self.held:
            on_device.update_inplace(value)
        self.session.run_with_iobinding(self.binding)
        self.binding.copy_outputs_to_cpu()


def in_precision(path, precision):
    """A file, or the bytes of the same model in 16-bit floats with its inputs and outputs as they were."""
    if precision == "fp32":
        return path
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    return convert_float_to_float16(onnx.load(path), keep_io_types=True).SerializeToString()


def rate(torch, amount, work, repeats=10):
    """amount / seconds of one call of `work`, the median over repeats, by the device's own clock."""
    work()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return amount / statistics.median(times)


def peaks():
    """TFLOP/s of a large product in each precision and GB/s of a large copy, on random numbers: zeros are faster than real data."""
    import torch

    found, size = {}, 8192
    for precision, dtype in (("fp32", torch.float32), ("tf32", torch.float32), ("fp16", torch.float16), ("bf16", torch.bfloat16)):
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        a, b = (torch.randn(size, size, device="cuda", dtype=dtype) for _ in range(2))
        out = torch.empty_like(a)
        found[f"{precision}_tflops"] = rate(torch, 2 * size**3 / 1e12, lambda: torch.matmul(a, b, out=out))
    source = torch.randn(2**30 // 4, device="cuda")
    target = torch.empty_like(source)
    found["copy_gbps"] = rate(torch, 2 * source.nbytes / 1e9, lambda: target.copy_(source))
    return {**found, "device": torch.cuda.get_device_name(), "torch": torch.__version__}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=["peaks", "onnxruntime", *MODES])
    parser.add_argument("model", nargs="?")
    parser.add_argument("inputs", nargs="?")
    parser.add_argument("--name")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--device", default="cuda", help="of torch; cpu tries the script itself out where there is no other")
    arguments = parser.parse_args()
    if arguments.engine == "peaks":
        print(json.dumps(peaks()), flush=True)
        return

    inputs, begin = dict(np.load(arguments.inputs)), time.perf_counter()
    if arguments.engine == "onnxruntime":
        engine = OnnxRuntime(arguments.model, inputs, arguments.precision)
    else:
        engine = Torch(MODES[arguments.engine], arguments.name, inputs, arguments.precision, arguments.device)
    engine.run()
    print(json.dumps({"first_answer_ms": (time.perf_counter() - begin) * 1e3, "peak": memory("VmHWM")}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"median_ms": median_ms(engine, arguments.seconds)}), flush=True)


if __name__ == "__main__":
    main()
