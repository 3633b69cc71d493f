"""Modules of operators that the networks of tests/models/zoo do not have, one for each file of runtime/formats/torch that reads them."""

import torch
from torch import nn
from torch.nn import functional as F

from torch_spectra import SPECTRA


class Functions(nn.Module):
    """Functions of one and two elements: elementwise.cc, binary.cc."""

    def forward(self, x, y):
        share = torch.sigmoid(x)
        angles = torch.atan2(x, y), torch.atan2(x.clamp(-0.1, 0.1), torch.tensor(0.0)), torch.atan2(torch.zeros_like(x), y)
        shrunk = F.hardshrink(x, 0.3), F.softshrink(x, 0.4), F.tanhshrink(x)
        parts = torch.logit(share), torch.logit(share, eps=0.3), torch.frac(3 * x), torch.sinc(x), torch.sinc(x.round()), torch.sgn(x)
        finite = torch.isfinite(x / x.round()).float(), torch.isin((4 * x).long(), torch.tensor([0, 2, -3])).float()
        sums = torch.hypot(x, y), torch.hypot(x.round(), y.round()), torch.xlogy(x.relu().round(), share), torch.deg2rad(90 * x), torch.rad2deg(x / 10)
        return [*angles, *shrunk, *parts, *finite, *sums]


class Distances(nn.Module):
    """distances.cc, and contractions of products.cc."""

    def __init__(self):
        super().__init__()
        self.pair = nn.Bilinear(8, 6, 5)
        self.rows = nn.Parameter(torch.randn(30, 8))

    def forward(self, x, y):
        similar = F.cosine_similarity(x, y, dim=-1), F.cosine_similarity(x, y, dim=1, eps=3.0), F.pairwise_distance(x, y), F.pairwise_distance(x, y, p=3, keepdim=True)
        apart = torch.cdist(x, y), torch.cdist(x, self.rows), torch.cdist(x, y, p=1), torch.cdist(x, y, p=float("inf")), torch.cdist(x, y, p=3)
        products = torch.inner(x, y[0]), torch.tensordot(x, self.rows, dims=([2], [1])), torch.addmv(x[:, 0, 0].new_zeros(30) + 1, self.rows, y[0, 0], alpha=0.5)
        return [*similar, *apart, *products, self.pair(x, y[..., :6])]


class Scatters(nn.Module):
    """scatter.cc."""

    def __init__(self):
        super().__init__()
        self.means = nn.EmbeddingBag(40, 6, mode="mean")
        self.sums = nn.EmbeddingBag(40, 6, mode="sum", include_last_offset=True)
        self.most = nn.EmbeddingBag(40, 6, mode="max")

    def forward(self, x, index, ids):
        source = x[:, :4] * 2
        reduced = []
        for how in ("sum", "mean", "amax", "amin", "prod"):
            for include in (True, False):
                reduced.append(x.scatter_reduce(1, index, source + 0.5, how, include_self=include))
        places = index[0, 0, :3]
        whole = x.index_add(1, places, x[:, :3], alpha=0.5), x.index_copy(1, torch.tensor([4, 0, 2]), x[:, :3]), x.index_fill(1, places, -1.5)
        larger = x.scatter(1, x.argsort(1)[:, :2], source), x.scatter_add(1, index[:, :2], source)
        flat, starts = ids.flatten(), torch.tensor([0, 3, 3, 5])
        bags = self.means(ids), self.most(ids), self.most(flat, starts), self.means(flat, starts), self.sums(flat, starts)
        weighted = F.embedding_bag(ids, self.sums.weight, mode="sum", per_sample_weights=ids / 40)
        return [*reduced, *whole, *larger, *bags, weighted, x.masked_scatter(x > 0.5, x.flip(0) + 3)]


class Cells(nn.Module):
    """cells.cc."""

    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTMCell(8, 10), nn.GRUCell(8, 10)
        self.tanh, self.relu = nn.RNNCell(8, 10), nn.RNNCell(8, 10, nonlinearity="relu", bias=False)

    def forward(self, x):
        h = c = g = t = r = torch.zeros(x.shape[0], 10)
        for step in range(3):
            h, c = self.lstm(x[:, step], (h, c))
            g, t, r = self.gru(x[:, step], g), self.tanh(x[:, step], t), self.relu(x[:, step], r)
        return [h, c, g, t, r]


class Diagonals(nn.Module):
    """diagonals.cc, and the orders of reductions.cc, shapes.cc and movement.cc."""

    def __init__(self):
        super().__init__()
        self.register_buffer("limits", torch.tensor([-1.0, -0.25, 0.0, 0.5, 1.0]))

    def forward(self, x):
        taken = torch.diagonal(x, dim1=1, dim2=2), torch.diagonal(x, -1, 2, 1), torch.diagonal(x, 2, 1, 2), torch.diag(x[0]), torch.trace(x[0])
        made = torch.diag_embed(x[:, 0]), torch.diag_embed(x[:, 0], 2), torch.diag_embed(x[:, 0], -1, 0, 2), torch.diag(x[0, 0], 1)
        lower, upper = torch.tril_indices(5, 7, -1), torch.triu_indices(5, 7, 1)
        triangles = x[:, lower[0], lower[1]], x[:, upper[0], upper[1]]
        found = torch.bucketize(x, self.limits), torch.bucketize(self.limits, self.limits, right=True), torch.searchsorted(x.sort(-1).values, x[:, :, :3])
        middle = *x.median(-1), x.median(), *x.median(1, keepdim=True), *torch.kthvalue(x, 2, -1), *torch.aminmax(x, dim=1)
        counts = torch.count_nonzero(x > 0, dim=1), torch.nansum(torch.sqrt(x), -1)
        moved = torch.moveaxis(x, 0, -1), x.swapdims(1, 2), x.mT, x.adjoint(), torch.ravel(x[0])
        turned = torch.rot90(x, 1, (1, 2)), torch.rot90(x, 2, (1, 2)), torch.rot90(x, -1, (1, 2)), torch.fliplr(x), torch.flipud(x)
        joined = torch.hstack([x, x]), torch.vstack([x[0, 0], x[0]]), torch.dstack([x[0], x[0]]), torch.column_stack([x[0, :, 0], x[0]]), torch.hstack([x[0, 0], x[0, 1]])
        return [*taken, *made, *triangles, *(each.float() for each in found), *(each.float() for each in middle), *(each.float() for each in counts), *moved, *turned, *joined]


class Windows(nn.Module):
    """windows.cc."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 3, 3, 3))
        self.offset = nn.Conv2d(3, 27, 3, padding=1)

    def forward(self, x):
        import torchvision

        columns = F.unfold(x, (3, 2), padding=1, stride=2)
        image = F.fold(F.unfold(x, 3, padding=1) * 2, (8, 10), 3, padding=1)
        moves = self.offset(x)
        offset, mask = moves[:, :18], torch.sigmoid(moves[:, 18:])
        deform = torchvision.ops.deform_conv2d
        return [columns, F.unfold(x, 2, dilation=2), image, deform(x, offset, self.weight, padding=1), deform(x, offset, self.weight, padding=1, mask=mask)]


BATCH = {0: "batch"}
TWO_ROWS = {"x": ([2, 5, 8], "", BATCH), "y": ([2, 5, 8], "", BATCH)}
#        name: (module, {input: (shape, kind, open axes)})
LAYERS = {
    "functions": (Functions, TWO_ROWS),
    "distances": (Distances, TWO_ROWS),
    "scatters": (Scatters, {"x": ([2, 5, 6], "", BATCH), "index": ([2, 4, 6], "<5", BATCH), "ids": ([2, 4], "<40", BATCH)}),
    "cells": (Cells, {"x": ([2, 3, 8], "", BATCH)}),
    "diagonals": (Diagonals, {"x": ([2, 5, 7], "", BATCH)}),
    "windows": (Windows, {"x": ([2, 3, 8, 10], "", BATCH)}),
    **SPECTRA,
}


def make_layer(name):
    """(module, {input: example}, {input: {axis: symbol}}, {symbol: size}, {input: kind}), as torch_zoo.make gives them."""
    module, inputs = LAYERS[name]
    examples = {key: torch.zeros(shape, dtype=torch.int64 if kind else torch.float32) for key, (shape, kind, _) in inputs.items()}
    dynamic, kinds = {key: axes for key, (_, _, axes) in inputs.items()}, {key: kind for key, (_, kind, _) in inputs.items()}
    return module().eval(), examples, dynamic, {"batch": 2, "seq": 10}, kinds
