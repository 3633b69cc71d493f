#!/usr/bin/env python3
"""Makes mixed.parquet, a small table with a column of each kind that Parquet has: .deps/venv/bin/python tests/data/tables/make_tables.py

It has 40 rows, in row groups of 16, 16 and 8. A comment names the rows that have a null, or that are at fault.
"""

import datetime
import decimal
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = range(40)
COLUMNS = {
    **{str(kind): pa.array([i - 20 if kind.bit_width and not pa.types.is_unsigned_integer(kind) else i for i in ROWS], kind)
       for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    "half": pa.array([np.float16(i / 2) for i in ROWS], pa.float16()),
    "float": pa.array([i / 4 for i in ROWS], pa.float32()),
    "double": pa.array([i / 8 for i in ROWS], pa.float64()),
    "bool": pa.array([i % 3 == 0 for i in ROWS]),
    "text": pa.array([f"text {i}" for i in ROWS]),
    "large_text": pa.array([f"large {i}" for i in ROWS], pa.large_string()),
    "bytes": pa.array([bytes([i, 0, 255]) for i in ROWS]),
    "two_bytes": pa.array([bytes([i, 1]) for i in ROWS], pa.binary(2)),
    "category": pa.array([["ant", "bee", "cat"][i % 3] for i in ROWS]).dictionary_encode(),
    "image": pa.array([{"bytes": b"picture %d" % i, "path": f"{i}.png"} if i != 3 else None for i in ROWS]),  # null: 3
    "maybe": pa.array([i if i % 4 else None for i in ROWS], pa.int32()),  # null: 0, 4, 8 ...
    "list": pa.array([[i + 0.5, -i] for i in ROWS], pa.list_(pa.float32())),
    "fixed": pa.array([[i, i + 1, i + 2] for i in ROWS], pa.list_(pa.uint8(), 3)),
    "bools": pa.array([[True, i % 2 == 0] for i in ROWS], pa.list_(pa.bool_())),
    "matrix": pa.array([[[i, 1, 2], [3, 4, i]] for i in ROWS], pa.list_(pa.list_(pa.int64()))),
    "ragged": pa.array([[[i], [i]] if i % 5 else [[i], [i, i]] for i in ROWS], pa.list_(pa.list_(pa.int32()))),  # at fault: 0, 5, 10 ...
    "holes": pa.array([[i, None] if i == 20 else [i, i] for i in ROWS], pa.list_(pa.float64())),  # at fault: 20
    "lists_null": pa.array([[[i], None] if i == 21 else [[i], [i]] for i in ROWS], pa.list_(pa.list_(pa.float32()))),  # at fault: 21
    "list_maybe": pa.array([None if i == 22 else [] if i == 23 else [i] * (i % 3) for i in ROWS], pa.list_(pa.float32())),  # null: 22
    "nothing": pa.nulls(40),
    # None of these is a number, a text, or a list of numbers.
    "day": pa.array([datetime.date(2026, 11, 1)] * 40),
    "moment": pa.array([datetime.datetime(2026, 11, 1)] * 40, pa.timestamp("ms")),
    "price": pa.array([decimal.Decimal("1.25")] * 40, pa.decimal128(9, 2)),
    "words": pa.array([["a", "b"]] * 40),
    "map": pa.array([[("k", 1)]] * 40, pa.map_(pa.string(), pa.int32())),
    "boxes": pa.array([[{"x": 1}]] * 40),
}

pq.write_table(pa.table(COLUMNS), pathlib.Path(__file__).parent / "mixed.parquet", row_group_size=16, compression="snappy", write_statistics=False)
