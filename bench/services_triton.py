"""The models of Triton's Python backend for bench/services, each by its name: prepare, run and finish of the ensemble, and whole, which is all three.

Each call takes the requests that Triton has gathered as one batch.
"""

import pathlib

import numpy as np
import services_code as code
import triton_python_backend_utils as utils


class TritonPythonModel:
    def initialize(self, args):
        folder = pathlib.Path(__file__).parent
        self.work = getattr(self, args["model_name"])
        if args["model_name"] in ("run", "whole"):
            self.session = code.session_of(folder / "model.onnx")
        if args["model_name"] in ("finish", "whole"):
            self.labels = np.array((folder / "labels.txt").read_bytes().splitlines(), object)

    def execute(self, requests):
        parts = [request.inputs()[0].as_numpy() for request in requests]
        results = self.work(np.concatenate(parts) if len(parts) > 1 else parts[0])
        ends = np.cumsum([len(part) for part in parts])
        return [
            utils.InferenceResponse([utils.Tensor(name, rows[end - len(part) : end]) for name, rows in results.items()])
            for part, end in zip(parts, ends)
        ]

    def prepare(self, files):
        return {"TENSOR": np.stack([code.tensor_of(file) for file in files[:, 0]])}

    def run(self, tensors):
        return {"SCORES": code.scores_of(self.session, tensors)}

    def finish(self, scores):
        best, probabilities = code.best_of(scores)
        return {"label": self.labels[best], "score": probabilities}

    def whole(self, files):
        return self.finish(self.run(self.prepare(files)["TENSOR"])["SCORES"])
