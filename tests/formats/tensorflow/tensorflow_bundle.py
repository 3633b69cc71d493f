"""Writes the weights of a SavedModel: a tensor bundle (variables.index and variables.data-00000-of-00001), as TensorFlow writes it."""

import struct

import numpy as np

DTYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "int64": 9, "bool": 10, "float16": 19}
STRING = 7
MAGIC = 0xDB4775248B80FB57
LANES = 4096  # parts of a buffer whose checksums are computed side by side


def table_of_crc():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table


TABLE = table_of_crc()
PLAIN = [int(value) for value in TABLE]


def shifted(crcs, length):
    """What `length` bytes of zeros make of a checksum, for the 32 single bits: a linear map, by repeated squaring."""
    matrix = np.array([PLAIN[1 << bit] if bit < 8 else 1 << (bit - 8) for bit in range(32)], np.uint64)  # one byte

    def apply(matrix, values):
        result = np.zeros_like(values)
        for bit in range(32):
            result ^= np.where((values >> np.uint64(bit)) & np.uint64(1), matrix[bit], np.uint64(0))
        return result

    crcs = np.asarray(crcs, np.uint64)
    while length:
        if length & 1:
            crcs = apply(matrix, crcs)
        matrix, length = apply(matrix, matrix), length >> 1
    return crcs


def crc32c(data):
    """Many bytes are cut into lanes of equal length; their checksums are joined afterwards."""
    crc, buffer = 0xFFFFFFFF, np.frombuffer(data, np.uint8)
    length = len(buffer) // LANES
    if length > 64:
        lanes = np.zeros(LANES, np.uint32)
        lanes[0] = crc
        columns = np.ascontiguousarray(buffer[: LANES * length].reshape(LANES, length).T)
        for column in columns:
            lanes = (lanes >> np.uint32(8)) ^ TABLE[(lanes ^ column) & np.uint32(255)]
        joined, step = lanes.astype(np.uint64), length
        while len(joined) > 1:  # neighbours: what stands before is shifted past what follows
            joined, step = shifted(joined[0::2], step) ^ joined[1::2], step * 2
        crc, buffer = int(joined[0]), buffer[LANES * length :]
    for byte in buffer.tobytes():
        crc = (crc >> 8) ^ PLAIN[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def masked(crc):
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number, value):
    return varint(number << 3) + varint(value) if value else b""


def message(number, body):
    return varint(number << 3 | 2) + varint(len(body)) + body


def entry_of(dtype, shape, offset, size, crc):
    dims = b"".join(message(2, field(1, dim)) for dim in shape)
    return field(1, dtype) + message(2, dims) + field(4, offset) + field(5, size) + varint(6 << 3 | 5) + struct.pack("<I", masked(crc))


def block_of(entries):
    """Every key in full: each entry is a restart point."""
    body, restarts = b"", []
    for key, value in entries:
        restarts.append(len(body))
        body += varint(0) + varint(len(key)) + varint(len(value)) + key + value
    return body + struct.pack(f"<{len(restarts) or 1}I", *(restarts or [0])) + struct.pack("<I", len(restarts) or 1)


def table_of(entries):
    """A table with one data block for 64 entries."""
    out, handles = b"", []

    def add(block):
        nonlocal out
        handle = varint(len(out)) + varint(len(block))
        out += block + b"\0" + struct.pack("<I", masked(crc32c(block + b"\0")))
        return handle

    for begin in range(0, len(entries), 64):
        part = entries[begin : begin + 64]
        handles.append((part[-1][0], add(block_of(part))))
    meta, index = add(block_of([])), add(block_of(handles))
    footer = meta + index
    return out + footer + b"\0" * (40 - len(footer)) + struct.pack("<Q", MAGIC)


def strings_of(array):
    texts = [text if isinstance(text, bytes) else text.encode() for text in array.reshape(-1)]
    lengths = b"".join(varint(len(text)) for text in texts)
    check = masked(crc32c(b"".join(struct.pack("<I", len(text)) for text in texts)))
    return lengths + (struct.pack("<I", check) if texts else b"") + b"".join(texts)


def write(folder, tensors):
    """{name: array} below <folder>/variables."""
    folder = folder / "variables"
    folder.mkdir(parents=True, exist_ok=True)
    entries, offset = [(b"", field(1, 1) + message(3, field(1, 1)))], 0
    with (folder / "variables.data-00000-of-00001").open("wb") as data:
        for name, array in sorted(tensors.items(), key=lambda item: item[0].encode()):
            text = array.dtype == object
            raw = strings_of(array) if text else np.ascontiguousarray(array).tobytes()
            dtype = STRING if text else DTYPES[array.dtype.name]
            entries.append((name.encode(), entry_of(dtype, array.shape, offset, len(raw), crc32c(raw))))
            data.write(raw)
            offset += len(raw)
    (folder / "variables.index").write_bytes(table_of(entries))
