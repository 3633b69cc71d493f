"""Bytes that are no ONNX model, or not all of one: what a failed download or a wrong export leaves behind."""

import io
import pickle
import struct
import zipfile

from .common import serialize

HTML = b"""<!DOCTYPE html>
<html><head><title>404 Not Found</title></head>
<body><h1>Not Found</h1><p>The requested model was not found on this server.</p></body></html>
"""
GIT_LFS = b"""version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 47891234
"""
PICKLE = pickle.dumps({"weights": [1.0, 2.0]}, protocol=2)
SAFETENSORS_HEADER = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
SAFETENSORS = struct.pack("<Q", len(SAFETENSORS_HEADER)) + SAFETENSORS_HEADER + bytes(8)


def truncated(model, percent):
    data = serialize(model)
    return data[:len(data) * percent // 100]


def flipped_length(model):
    """The graph's length, in the byte after its tag (field 7, wire type 2), with one high bit turned over."""
    data = bytearray(serialize(model))
    data[data.index(b"\x3a") + 1] ^= 0x40
    return bytes(data)


def zip_file(model):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("model/model.onnx"), serialize(model))
    return file.getvalue()
