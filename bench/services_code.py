"""What the peers of bench/services do with a picture, as teams write it: Pillow, NumPy, and ONNX Runtime on one thread."""

import io

import numpy as np
import onnxruntime
from PIL import Image

RESIZED, SIDE, TOP = 256, 224, 5
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FACTORS = [1 / (255 * std) for std in STD]
SHIFTS = [-mean / std for mean, std in zip(MEAN, STD)]


def tensor_of(file):
    """The bytes of a picture's file as FP32 [3, SIDE, SIDE], by torchvision's rule."""
    picture = Image.open(io.BytesIO(file))
    if picture.mode != "RGB":  # else it would be copied
        picture = picture.convert("RGB")
    ratio = RESIZED / min(picture.size)
    picture = picture.resize([RESIZED if side == min(picture.size) else int(side * ratio) for side in picture.size], Image.BILINEAR)
    left, top = (round((side - SIDE) / 2) for side in picture.size)
    pixels = np.asarray(picture.crop((left, top, left + SIDE, top + SIDE)))
    tensor = np.empty((3, SIDE, SIDE), np.float32)
    for channel, plane in enumerate(tensor):
        np.multiply(pixels[..., channel], np.float32(FACTORS[channel]), out=plane)
        plane += np.float32(SHIFTS[channel])
    return tensor


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def scores_of(session, tensors):
    return session.run(None, {session.get_inputs()[0].name: tensors})[0]


def best_of(scores):
    """Indices of the best classes and their probabilities, of [n, classes]: both [n, TOP]."""
    shifted = np.exp(scores - scores.max(1, keepdims=True))
    best = np.argpartition(-scores, TOP, 1)[:, :TOP]
    best = np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), 1), 1)
    return best, np.take_along_axis(shifted, best, 1) / shifted.sum(1, keepdims=True)
