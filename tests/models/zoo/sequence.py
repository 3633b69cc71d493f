"""Recurrent networks, audio and tables: what is neither an image classifier nor a text transformer."""

import torch
import transformers as hf
from torch import nn

from zoo.exporters import Wrapped, dynamo, torchscript
from zoo.vision import batched


class Crnn(nn.Module):
    """A line of text in, letters at each step out: convolutions shrink the height to one, a two-layer BiLSTM reads along the width."""

    def __init__(self, letters=37, w=24):
        super().__init__()
        layers = []
        for c_in, c_out, pool in (
            (1, w, (2, 2)),
            (w, 2 * w, (2, 2)),
            (2 * w, 4 * w, (2, 1)),
            (4 * w, 4 * w, (2, 1)),
            (4 * w, 4 * w, (2, 1)),
        ):
            layers += [nn.Conv2d(c_in, c_out, 3, padding=1), nn.BatchNorm2d(c_out), nn.ReLU(), nn.MaxPool2d(pool)]
        self.trunk = nn.Sequential(*layers)
        self.reader = nn.LSTM(4 * w, 48, num_layers=2, bidirectional=True)
        self.letters = nn.Linear(96, letters)

    def forward(self, x):
        steps, _ = self.reader(self.trunk(x).squeeze(2).permute(2, 0, 1))
        return self.letters(steps).log_softmax(2)


def crnn(opset):
    dynamic = {"line": {0: "batch", 3: "width"}, "letters": {0: "steps", 1: "batch"}}
    return torchscript(Crnn(), {"line": torch.zeros(2, 1, 32, 64)}, ["letters"], dynamic, opset)


class Tagger(nn.Module):
    def __init__(self, cell, tags=9):
        super().__init__()
        self.embed, self.cell, self.tags = nn.Embedding(300, 40), cell(40, 32, batch_first=True, bidirectional=True), nn.Linear(64, tags)

    def forward(self, tokens):
        return self.tags(self.cell(self.embed(tokens))[0])


def tagger(cell, opset, export=torchscript):
    dynamic = {"tokens": {0: "batch", 1: "seq"}}
    if export is torchscript:
        dynamic["tags"] = {0: "batch", 1: "seq"}
    return export(Tagger(cell), {"tokens": torch.ones(2, 11, dtype=torch.int64)}, ["tags"], dynamic, opset)


class Forecaster(nn.Module):
    """GRU over a series with its state in and out, as streaming services call it."""

    def __init__(self):
        super().__init__()
        self.gru, self.head = nn.GRU(6, 32, num_layers=2), nn.Linear(32, 3)

    def forward(self, series, state):
        steps, state = self.gru(series, state)
        return self.head(steps[-1]), state


def forecaster():
    inputs = {"series": torch.zeros(10, 2, 6), "state": torch.zeros(2, 2, 32)}
    dynamic = {"series": {0: "steps", 1: "batch"}, "state": {1: "batch"}, "forecast": {0: "batch"}, "new_state": {1: "batch"}}
    return torchscript(Forecaster(), inputs, ["forecast", "new_state"], dynamic, 14)


class Elman(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.RNN(8, 24, nonlinearity="tanh", batch_first=True), nn.Linear(24, 4)

    def forward(self, x):
        return self.head(self.rnn(x)[1][0])


class Translator(nn.Module):
    """nn.Transformer with a causal mask and key padding."""

    def __init__(self, words=200, width=48):
        super().__init__()
        self.source, self.target, self.place = nn.Embedding(words, width), nn.Embedding(words, width), nn.Embedding(32, width)
        self.body = nn.Transformer(width, 4, 2, 2, 96, batch_first=True)
        self.words = nn.Linear(width, words)

    def forward(self, source, target):
        steps = torch.arange(target.shape[1])
        causal = torch.triu(torch.full((target.shape[1], target.shape[1]), float("-inf")), 1)
        hidden = self.body(self.source(source), self.target(target) + self.place(steps), tgt_mask=causal, src_key_padding_mask=source == 0)
        return self.words(hidden)


def translator(opset):
    inputs = {"source": torch.ones(2, 9, dtype=torch.int64), "target": torch.ones(2, 6, dtype=torch.int64)}
    return batched(Translator(), inputs, ["scores"], opset)


class WaveNet(nn.Module):
    """Dilated causal Conv1d with gates, after the paper's figure 4."""

    def __init__(self, c=16, layers=4):
        super().__init__()
        self.entry, self.exit = nn.Conv1d(1, c, 1), nn.Sequential(nn.ReLU(), nn.Conv1d(c, c, 1), nn.ReLU(), nn.Conv1d(c, 32, 1))
        self.gates = nn.ModuleList(nn.Conv1d(c, 2 * c, 2, dilation=2**i) for i in range(layers))
        self.residual, self.skip = nn.ModuleList(nn.Conv1d(c, c, 1) for _ in range(layers)), nn.ModuleList(
            nn.Conv1d(c, c, 1) for _ in range(layers)
        )

    def forward(self, x):
        x, total = self.entry(x), 0
        for i, (gate, residual, skip) in enumerate(zip(self.gates, self.residual, self.skip)):
            a, b = gate(nn.functional.pad(x, (2**i, 0))).chunk(2, 1)
            z = torch.tanh(a) * torch.sigmoid(b)
            x, total = x + residual(z), total + skip(z)
        return self.exit(total)


def whisper_encoder():
    config = hf.WhisperConfig(
        d_model=64,
        encoder_layers=2,
        encoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_layers=1,
        decoder_attention_heads=4,
        decoder_ffn_dim=128,
        num_mel_bins=40,
        max_source_positions=50,
        vocab_size=600,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    module = hf.WhisperModel(config).encoder
    return batched(Wrapped(module, lambda m, mel: m(mel)[0]), {"mel": torch.zeros(2, 40, 100)}, ["hidden"], 17)


def wav2vec2():
    config = hf.Wav2Vec2Config(
        vocab_size=32,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        conv_dim=(32,) * 4,
        conv_stride=(5, 4, 2, 2),
        conv_kernel=(10, 8, 4, 2),
        num_feat_extract_layers=4,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
    )
    module = hf.Wav2Vec2ForCTC(config)
    return batched(Wrapped(module, lambda m, wave: m(wave).logits), {"wave": torch.zeros(2, 1600)}, ["letters"], 17)


class WideAndDeep(nn.Module):
    """Clicks from three categories, a bag of tags and ten numbers."""

    def __init__(self):
        super().__init__()
        self.wide = nn.ModuleList(nn.Embedding(n, 1) for n in (50, 120, 1000))
        self.deep = nn.ModuleList(nn.Embedding(n, 16) for n in (50, 120, 1000))
        self.tags = nn.EmbeddingBag(80, 16, mode="mean")
        self.layers = nn.Sequential(nn.BatchNorm1d(74), nn.Linear(74, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, ids, tags, numbers):
        wide = sum(table(ids[:, i]) for i, table in enumerate(self.wide))
        bag = self.tags.weight[tags].mean(1)
        deep = torch.cat([*(table(ids[:, i]) for i, table in enumerate(self.deep)), bag, numbers], 1)
        return torch.sigmoid(wide + self.layers(deep))


def wide_and_deep():
    inputs = {"ids": torch.ones(2, 3, dtype=torch.int64), "tags": torch.ones(2, 5, dtype=torch.int64), "numbers": torch.zeros(2, 10)}
    return batched(WideAndDeep(), inputs, ["click"], 15)


class Mixer(nn.Module):
    """MLP-Mixer on 48 pixels of 8x8 patches, three blocks."""

    def __init__(self, tokens=36, width=48, depth=3):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        mlp = lambda n: nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(approximate="tanh"), nn.Linear(2 * n, n))  # noqa: E731
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth + 1))
        self.across, self.within = nn.ModuleList(mlp(tokens) for _ in range(depth)), nn.ModuleList(mlp(width) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        for i, (across, within) in enumerate(zip(self.across, self.within)):
            x = x + across(self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2)
            x = x + within(self.norms[2 * i + 1](x))
        return self.head(self.norms[-1](x).mean(1))


def perceptron():
    layers = []
    for i, activation in enumerate([nn.ReLU(), nn.GELU(), nn.SiLU(), nn.Mish(), nn.SELU()]):
        layers += [nn.Linear(20 if i == 0 else 64, 64), activation]
    return nn.Sequential(*layers, nn.Linear(64, 7), nn.Softmax(1))


MODELS = {
    "crnn": lambda: crnn(14),
    "lstm_tagger": lambda: tagger(nn.LSTM, 12),
    "lstm_tagger_dynamo": lambda: tagger(nn.LSTM, 18, dynamo),
    "gru_tagger": lambda: tagger(nn.GRU, 16),
    "gru_forecaster": forecaster,
    "elman": lambda: batched(Elman(), {"series": torch.zeros(2, 7, 8)}, ["kind"], 13),
    "translator": lambda: translator(17),
    "wavenet": lambda: batched(WaveNet(), {"wave": torch.zeros(2, 1, 64)}, ["next"], 15),
    "whisper_encoder": whisper_encoder,
    "wav2vec2": wav2vec2,
    "wide_and_deep": wide_and_deep,
    "mlp_mixer": lambda: batched(Mixer(), {"image": torch.zeros(2, 3, 48, 48)}, ["scores"], 18),
    "perceptron": lambda: batched(perceptron(), {"x": torch.zeros(2, 20)}, ["share"], 10),
    "perceptron_dynamo": lambda: batched(perceptron(), {"x": torch.zeros(2, 20)}, ["share"], 22, dynamo),
}
