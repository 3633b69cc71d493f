"""Networks for text and sound, as PaddleNLP, PaddleSpeech and PaddleRec have them, small."""

import math

import paddle
from paddle import nn
from paddle.nn import functional as F

IDS = ("input_ids", "int64", [None, 12], "<40")
SEGMENTS = ("token_type_ids", "int64", [None, 12], "<2")
MASK = ("attention_mask", "int64", [None, 12], "prefix")


class Bert(nn.Layer):
    def __init__(self, tasks=0, act="gelu", pooled=True, width=32, length=16):
        super().__init__()
        self.word, self.place, self.segment = nn.Embedding(40, width, padding_idx=0), nn.Embedding(length, width), nn.Embedding(2, width)
        self.task = nn.Embedding(tasks, width) if tasks else None
        self.norm = nn.LayerNorm(width)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4, 2 * width, 0.1, act, 0.1, 0.0), 2)
        self.pooler = nn.Linear(width, width) if pooled else None
        self.head = nn.Linear(width, 5)

    def embed(self, ids, segments):
        ones = paddle.ones_like(ids, dtype="int64")
        x = self.word(ids) + self.place(paddle.cumsum(ones, axis=1) - ones) + self.segment(segments)
        if self.task is not None:
            x = x + self.task(paddle.full_like(ids, 1))
        return F.dropout(self.norm(x), 0.1, training=self.training)

    def forward(self, input_ids, token_type_ids, attention_mask):
        mask = (1.0 - attention_mask.astype("float32").unsqueeze([1, 2])) * -1e4
        x = self.encoder(self.embed(input_ids, token_type_ids), mask)
        return self.head(paddle.tanh(self.pooler(x[:, 0])) if self.pooler is not None else x)


class ErnieOpen(Bert):
    """The mask comes from the ids, as in ERNIE."""

    def forward(self, input_ids, token_type_ids):
        mask = (input_ids == 0).astype("float32").unsqueeze([1, 2]) * -1e4
        x = self.encoder(self.embed(input_ids, token_type_ids), mask)
        return self.head(x), paddle.tanh(self.pooler(x[:, 0]))


class Gpt(nn.Layer):
    def __init__(self, width=32, length=10):
        super().__init__()
        self.word, self.place = nn.Embedding(40, width), nn.Embedding(16, width)
        self.layers = nn.LayerList([nn.TransformerEncoderLayer(width, 4, 64, 0.0, "gelu", normalize_before=True) for _ in range(2)])
        self.norm = nn.LayerNorm(width)

    def forward(self, input_ids):
        length = paddle.shape(input_ids)[1]
        x = self.word(input_ids) + self.place(paddle.arange(length, dtype="int64")).unsqueeze(0)
        mask = paddle.triu(paddle.full([10, 10], -1e4, dtype="float32"), 1)
        for layer in self.layers:
            x = layer(x, mask)
        return paddle.matmul(self.norm(x), self.word.weight, transpose_y=True)


class Llama(nn.Layer):
    """RMS norms, rotary places and a gated feed-forward, as PaddleNLP writes them without fused operators."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.word = nn.Embedding(40, width)
        self.scale = nn.ParameterList([self.create_parameter([width]) for _ in range(2)])
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias_attr=False) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(width, 64, bias_attr=False), nn.Linear(width, 64, bias_attr=False), nn.Linear(64, width, bias_attr=False)
        self.heads, self.head = heads, width // heads
        angles = paddle.outer(paddle.arange(10).astype("float32"), 1.0 / 10000 ** (paddle.arange(0, self.head, 2).astype("float32") / self.head))
        angles = paddle.concat([angles, angles], -1).unsqueeze([0, 2])
        self.register_buffer("cos", paddle.cos(angles))
        self.register_buffer("sin", paddle.sin(angles))

    def rms(self, x, scale):
        return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * scale

    def rotate(self, x):
        a, b = paddle.chunk(x, 2, axis=-1)
        return x * self.cos + paddle.concat([-b, a], -1) * self.sin

    def forward(self, input_ids):
        x = self.word(input_ids)
        y = self.rms(x, self.scale[0])
        q, k, v = (layer(y).reshape([0, 0, self.heads, self.head]) for layer in (self.q, self.k, self.v))
        q, k, v = (t.transpose([0, 2, 1, 3]) for t in (self.rotate(q), self.rotate(k), v))
        scores = paddle.matmul(q / math.sqrt(self.head), k.transpose([0, 1, 3, 2]))
        mask = paddle.triu(paddle.full([10, 10], -1e4), 1)
        y = paddle.matmul(F.softmax(scores + mask, -1), v).transpose([0, 2, 1, 3]).reshape([0, 0, self.heads * self.head])
        x = x + self.o(y)
        y = self.rms(x, self.scale[1])
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Tagger(nn.Layer):
    def __init__(self, kind=nn.LSTM, layers=2, direction="bidirect", lengths=False):
        super().__init__()
        self.word = nn.Embedding(40, 12)
        self.rnn = kind(12, 16, num_layers=layers, direction=direction)
        self.head = nn.Linear(16 * (2 if direction == "bidirect" else 1), 5)
        self.lengths = lengths

    def forward(self, input_ids):
        x = self.word(input_ids)
        y, _ = self.rnn(x, sequence_length=(input_ids > 0).astype("int64").sum(-1)) if self.lengths else self.rnn(x)
        return self.head(y)


class TextCnn(nn.Layer):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(40, 16)
        self.convs = nn.LayerList([nn.Conv2D(1, 8, (size, 16)) for size in (2, 3, 4)])
        self.head = nn.Linear(24, 5)

    def forward(self, input_ids):
        x = self.word(input_ids).unsqueeze(1)
        return self.head(paddle.concat([F.relu(conv(x)).squeeze(3).max(-1) for conv in self.convs], -1))


class ConformerLayer(nn.Layer):
    def __init__(self, width=24, heads=4):
        super().__init__()
        self.first, self.second = self.feed(width), self.feed(width)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o, self.place = (nn.Linear(width, width) for _ in range(5))
        self.u, self.w = self.create_parameter([heads, width // heads]), self.create_parameter([heads, width // heads])
        self.up, self.deep, self.batch, self.down = nn.Conv1D(width, 2 * width, 1), nn.Conv1D(width, width, 5, padding=2, groups=width), nn.BatchNorm1D(width), nn.Conv1D(width, width, 1)
        self.heads, self.head = heads, width // heads

    def feed(self, width):
        return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 48), nn.Silu(), nn.Linear(48, width))

    def split(self, x):
        return x.reshape([0, -1, self.heads, self.head])

    def forward(self, x, places):
        x = x + 0.5 * self.first(x)
        y = self.norm1(x)
        q, k, v, p = self.split(self.q(y)), self.split(self.k(y)), self.split(self.v(y)), self.split(self.place(places))
        scores = paddle.matmul((q + self.u).transpose([0, 2, 1, 3]), k.transpose([0, 2, 3, 1]))
        scores = (scores + paddle.matmul((q + self.w).transpose([0, 2, 1, 3]), p.transpose([0, 2, 3, 1]))) / math.sqrt(self.head)
        x = x + self.o(paddle.matmul(F.softmax(scores, -1), v.transpose([0, 2, 1, 3])).transpose([0, 2, 1, 3]).reshape([0, 0, self.heads * self.head]))
        y = F.glu(self.up(self.norm2(x).transpose([0, 2, 1])), axis=1)
        x = x + self.down(F.silu(self.batch(self.deep(y)))).transpose([0, 2, 1])
        return self.norm3(x + 0.5 * self.second(x))


class Conformer(nn.Layer):
    def __init__(self, width=24):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2D(1, 8, 3, 2), nn.ReLU(), nn.Conv2D(8, 8, 3, 2), nn.ReLU())
        self.linear = nn.Linear(8 * 4, width)
        self.register_buffer("places", paddle.sin(paddle.outer(paddle.arange(9).astype("float32"), paddle.linspace(0.1, 2, width))).unsqueeze(0))
        self.layers = nn.LayerList([ConformerLayer(width) for _ in range(2)])
        self.head = nn.Linear(width, 20)

    def forward(self, speech):
        x = self.conv(speech.unsqueeze(1))
        x = self.linear(x.transpose([0, 2, 1, 3]).reshape([0, 0, 32])) * math.sqrt(24)
        for layer in self.layers:
            x = layer(x, self.places)
        return F.log_softmax(self.head(x), -1)


class DeepFm(nn.Layer):
    def __init__(self):
        super().__init__()
        self.one, self.many = nn.Embedding(50, 1), nn.Embedding(50, 6)
        self.dense = nn.Linear(4, 6)
        self.deep = nn.Sequential(nn.Linear(6 * 9, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, sparse, dense):
        first = paddle.sum(self.one(sparse), axis=1)
        x = paddle.concat([self.many(sparse), self.dense(dense).unsqueeze(1)], axis=1)
        square = paddle.square(paddle.sum(x, 1)) - paddle.sum(paddle.square(x), 1)
        return first + 0.5 * paddle.sum(square, 1, keepdim=True) + self.deep(paddle.flatten(x, 1))


class Decoder(nn.Layer):
    """Greedy decoding in a while, and a choice by an if."""

    def __init__(self):
        super().__init__()
        self.word, self.cell, self.head = nn.Embedding(20, 12), nn.Linear(24, 12), nn.Linear(12, 20)

    def forward(self, state):
        step = paddle.zeros([1], "int64")
        word = paddle.argmax(state[:, :5], -1)
        total = paddle.zeros_like(state)
        while step < 4:
            state = paddle.tanh(self.cell(paddle.concat([state, self.word(word)], -1)))
            word = paddle.argmax(self.head(state), -1)
            total = total + state
            step = step + 1
        if paddle.mean(total) > 0:
            result = total * 2
        else:
            result = total - 1
        return self.head(result)


def encoder_layers():
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.net = nn.Transformer(16, 2, 1, 1, 32, 0.0)

        def forward(self, source, target):
            return self.net(source, target)

    return Net()


MODELS = {
    "bert": (Bert, [IDS, SEGMENTS, MASK]),
    "bert_open": (lambda: Bert(pooled=False, act="relu"), [(n, t, [None, "length=7"], k) for n, t, _, k in (IDS, SEGMENTS, MASK)]),
    "conformer": (Conformer, [("speech", "float32", [None, 39, 20], "")]),
    "deepfm": (DeepFm, [("sparse", "int64", [None, 8], "<50"), ("dense", "float32", [None, 4], "")]),
    "ernie": (lambda: ErnieOpen(tasks=3), [IDS, SEGMENTS]),
    "gpt": (Gpt, [("input_ids", "int64", [None, 10], "<40")]),
    "gru_tagger": (lambda: Tagger(nn.GRU, 1, "forward"), [IDS]),
    "llama": (Llama, [("input_ids", "int64", [None, 10], "<40")]),
    "lstm_tagger": (Tagger, [IDS]),
    "lstm_lengths": (lambda: Tagger(lengths=True), [IDS]),
    "simple_rnn": (lambda: Tagger(nn.SimpleRNN, 2, "forward"), [IDS]),
    "text_cnn": (TextCnn, [IDS]),
    "transformer": (encoder_layers, [("source", "float32", [None, 6, 16], ""), ("target", "float32", [None, 5, 16], "")]),
    "while_decoder": (Decoder, [("state", "float32", [None, 12], "")]),
}
