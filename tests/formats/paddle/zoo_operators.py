"""Operators in groups: each network has many results, one for each operator or form of it."""

import paddle
from paddle import nn
from paddle.nn import functional as F

X = ("x", "float32", [None, 4, 6], "")
Y = ("y", "float32", [None, 4, 6], "")


class Elementwise(nn.Layer):
    def forward(self, x, y):
        p, u = x.abs() + 0.5, F.sigmoid(x) * 0.9  # positive; between 0 and 1
        return (
            paddle.cos(x), paddle.sin(x), paddle.tan(u), paddle.acos(u), paddle.asin(u), paddle.atan(x), paddle.cosh(x), paddle.sinh(x), paddle.asinh(x), paddle.atanh(u), paddle.acosh(p + 1),
            paddle.ceil(x), paddle.floor(x), paddle.round(x), paddle.trunc(x), paddle.sign(x), paddle.erf(x), paddle.exp(x), paddle.expm1(x), paddle.log(p), paddle.log2(p), paddle.log10(p),
            paddle.log1p(p), paddle.sqrt(p), paddle.rsqrt(p), paddle.square(x), paddle.reciprocal(p), x**3, x**2, p**0.5, p**y, paddle.maximum(x, y), paddle.minimum(x, y), paddle.fmax(x, y),
            x % p, x // p, x / p, x - y, paddle.clip(x, -0.5, 0.7), paddle.lerp(x, y, 0.3), paddle.scale(x, 2.0, 1.0, bias_after_scale=False),
        )  # fmt: skip


class Activations(nn.Layer):
    def forward(self, x):
        return (
            F.relu(x), F.relu6(x * 4), F.elu(x, 0.7), F.selu(x), F.celu(x, 0.8), F.gelu(x), F.gelu(x, approximate=True), F.hardshrink(x), F.hardsigmoid(x), F.hardswish(x * 3), F.hardtanh(x),
            F.leaky_relu(x, 0.3), F.log_sigmoid(x), F.mish(x), F.sigmoid(x), F.silu(x), F.softplus(x), F.softplus(x * 9, 2, 5), F.softshrink(x), F.softsign(x), F.swish(x), F.tanh(x),
            F.tanhshrink(x), F.thresholded_relu(x), F.softmax(x, 1), F.log_softmax(x), F.glu(x), paddle.stanh(x),
        )  # fmt: skip


class Logic(nn.Layer):
    def forward(self, x, y, ids):
        a, b = x > 0, y > 0
        i, j = ids - 2, ids + 1
        return (
            x == y, x != y, x < y, x <= y, x >= y, a & b, a | b, a ^ b, ~a, paddle.logical_not(b), paddle.where(a, x, y), paddle.isnan(x), paddle.isinf(x), paddle.isfinite(x),
            i // 2, i % 3, i * j, i - j, j // j, paddle.bitwise_and(ids, j), paddle.bitwise_or(ids, j), paddle.bitwise_xor(ids, j), paddle.bitwise_not(ids), ids.astype("float32") / 3, a.astype("int32"),
            a.all(1), b.any(), paddle.equal(ids, 3), paddle.maximum(i, j), (ids + 0.5), paddle.sum(a.astype("int64")),
        )  # fmt: skip


class Reductions(nn.Layer):
    def forward(self, x):
        return (
            x.sum(), x.sum(1), x.sum([0, 2], keepdim=True), x.mean(), x.mean(-1, keepdim=True), x.max(1), x.min([1, 2]), x.prod(2), paddle.amax(x, 1), paddle.amin(x, -1), paddle.logsumexp(x, 1),
            paddle.argmax(x, 1), paddle.argmax(x), paddle.argmin(x, -1, keepdim=True), paddle.cumsum(x, 1), paddle.cumsum(x), paddle.cumprod(x, 2), paddle.norm(x, 2, 1), paddle.norm(x, 1, 2),
            paddle.norm(x, float("inf"), -1), paddle.norm(x, 3, 1), paddle.linalg.norm(x), F.normalize(x, axis=1), x.std(1), x.var(2), paddle.numel(x),
        )  # fmt: skip


class Movement(nn.Layer):
    def forward(self, x, y):
        z = x.unsqueeze(1)
        written = x * 1
        written[:, 1:3] = 0.5
        a, b = paddle.split(x, 2, axis=2)
        c, d, e = paddle.split(x, [1, 2, -1], axis=1)
        return (
            x.transpose([2, 0, 1]), x.reshape([-1, 24]), x.reshape([0, 2, 2, 6]), x.flatten(), x.flatten(0, 1), x.flatten(1), z.squeeze(1), z.squeeze(), x.unsqueeze([0, 3]), paddle.concat([x, y], 1),
            paddle.stack([x, y], 2), a, b, c, d, e, *paddle.unbind(x, 1)[:2], *paddle.unstack(x, 1)[2:], x[:, 1:3], x[:, -1], x[:, ::2, 1::3], x[..., 2:], x[:, :, ::-1],
            paddle.slice(x, [1, 2], [0, -3], [3, 100]), paddle.strided_slice(x, [2], [5], [0], [-2]), x.unsqueeze(1).expand([-1, 3, 4, 6]), x[:, :1].expand_as(y), paddle.tile(x, [1, 2, 3]),
            paddle.tile(x, [2, 1, 1, 2]), paddle.flip(x, [1, 2]), paddle.roll(x, 1), paddle.roll(x, [1, -2], [1, 2]), written, paddle.crop(x, [-1, 2, 3], [0, 1, 2]), paddle.tril(x), paddle.triu(x, 1),
            paddle.repeat_interleave(x, 3, 1), paddle.repeat_interleave(x, 2, 2), paddle.increment(x.sum()), paddle.chunk(x, 3, 2)[1], paddle.broadcast_to(x[:, :, :1], [2, 4, 6]), x.T if False else x.transpose([2, 1, 0]), paddle.moveaxis(x, 0, 2),
        )  # fmt: skip


class Index(nn.Layer):
    def forward(self, x, ids):
        values, places = paddle.topk(x, 2, axis=-1)
        small, _ = paddle.topk(x, 3, axis=1, largest=False)
        rows = x[:, :, 0]
        column = ids.unsqueeze(-1) % 4
        return (
            values, places, small, paddle.sort(x, 1), paddle.argsort(x, -1, descending=True), paddle.gather(x, ids[0] % 4, 1), paddle.index_select(x, ids[0], 2), paddle.index_sample(rows, ids % 4),
            paddle.take_along_axis(x, ids.unsqueeze(1).expand([2, 4, 4]), 2), paddle.put_along_axis(x, column, paddle.full([2, 4, 1], 0.25), 1), paddle.gather_nd(x, paddle.stack([ids % 2, ids % 4], -1)),
            paddle.scatter(rows, paddle.to_tensor([1, 0]), rows * 2), paddle.scatter(rows, paddle.to_tensor([1, 1]), rows, overwrite=False), F.one_hot(ids, 6),
            paddle.scatter_nd_add(rows, paddle.to_tensor([[0], [0]]), rows), paddle.nonzero(ids > 2), paddle.masked_select(x, x > 0.5), F.embedding(ids, x[0].transpose([1, 0])),
        )  # fmt: skip


class Creation(nn.Layer):
    def forward(self, x):
        n = paddle.shape(x)
        return (
            paddle.zeros([2, 3]), paddle.ones_like(x), paddle.full([3], 7, "int64"), paddle.full_like(x, 0.5), paddle.arange(5), paddle.arange(1, 7, 2).astype("float32"), paddle.linspace(0, 1, 5),
            paddle.eye(3), paddle.eye(2, 4), n, n[1:], paddle.zeros([n[0], 3]), paddle.full([n[0], n[2]], 2.5), paddle.arange(n[1]), paddle.to_tensor([[1.5, 2.5], [3.5, 4.5]]),
            F.sequence_mask(paddle.shape(x), 5), F.sequence_mask(paddle.shape(x)), *paddle.meshgrid(paddle.arange(3), paddle.arange(2)), paddle.zeros_like(x, dtype="int32"), x.reshape([n[0], n[1] * n[2]]), paddle.assign(x),
        )  # fmt: skip


class Products(nn.Layer):
    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([6, 5])

    def forward(self, x, y):
        yt = y.transpose([0, 2, 1])
        return (
            paddle.matmul(x, yt), paddle.matmul(x, y, transpose_y=True), paddle.matmul(x, y, transpose_x=True), paddle.bmm(x, yt), paddle.matmul(x, self.weight), paddle.mv(x[0], y[1, 2]),
            paddle.dot(x[0, 1], y[0, 1]), paddle.addmm(x[0, :, :4], x[1], yt[0], 0.5, 2.0), paddle.einsum("bij,bkj->bik", x, y), F.linear(x, self.weight) + 1, paddle.outer(x[0, 0], y[0, 0]),
        )  # fmt: skip


class Images(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv3, self.up1 = nn.Conv1D(4, 3, 3, 2, 1), nn.Conv3D(1, 2, 3, padding=1), nn.Conv1DTranspose(4, 3, 4, 2, 1)
        self.same, self.uneven = nn.Conv2D(4, 4, 3, 2, "SAME", groups=2), nn.Conv2D(4, 3, 3, padding=[1, 2, 0, 1], dilation=2)
        self.up = nn.Conv2DTranspose(4, 2, 3, 2, 1, groups=2)
        self.group, self.instance, self.layer = nn.GroupNorm(2, 4), nn.InstanceNorm2D(4), nn.LayerNorm([9, 10])

    def forward(self, image):
        row = image[:, :, 0]
        return (
            self.conv1(row), self.conv3(image.unsqueeze(1)), self.up1(row), self.same(image), self.uneven(image), self.up(image), self.up(image, output_size=[18, 19]),
            self.group(image), self.instance(image), self.layer(image), F.local_response_norm(image, 3), F.max_pool2d(image, 3, 2, 1), F.max_pool2d(image, 2, 2, ceil_mode=True),
            F.avg_pool2d(image, 3, 2, 1), F.avg_pool2d(image, 3, 2, 1, exclusive=False), F.avg_pool2d(image, 2, 2, ceil_mode=True), F.max_pool1d(row, 2), F.avg_pool1d(row, 3, 1, 1),
            F.adaptive_avg_pool2d(image, 3), F.adaptive_avg_pool2d(image, [4, 7]), F.adaptive_max_pool2d(image, 3), F.adaptive_max_pool2d(image, [2, 4]), F.adaptive_avg_pool1d(row, 5),
            *F.max_pool2d(image, 2, 2, return_mask=True), F.interpolate(image, [5, 20], mode="nearest"), F.interpolate(image, [13, 7], mode="bilinear"),
            F.interpolate(image, [13, 7], mode="bilinear", align_mode=1), F.interpolate(image, [12, 17], mode="bilinear", align_corners=True), F.interpolate(image, scale_factor=1.5, mode="bicubic"),
            F.interpolate(row, [15], mode="linear", data_format="NCW"), F.interpolate(image.unsqueeze(1), [6, 5, 4], mode="trilinear", data_format="NCDHW"), F.interpolate(image, scale_factor=[2, 3]),
            F.pad(image, [1, 2, 3, 4]), F.pad(image, [1, 1, 2, 2], mode="reflect"), F.pad(image, [1, 1, 2, 2], mode="replicate", value=1.0), F.pad(row, [2, 1], value=0.5, data_format="NCL"),
            F.pixel_shuffle(image, 2), F.pixel_unshuffle(image[:, :, :8], 2), F.channel_shuffle(image, 2), F.unfold(image, [3, 2], [2, 1], [1, 0], 2), F.prelu(image, paddle.to_tensor([0.2])),
            F.temporal_shift(image, 2, 0.25), F.pad(image, [1, 0, 2, 1]), F.max_unpool2d(*F.max_pool2d(image, 2, 2, return_mask=True), 2, output_size=[9, 10]),
        )  # fmt: skip


class Arrays(nn.Layer):
    """Lists that a loop over the batch fills, as detectors of PaddleDetection do, and ranges that are computed."""

    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([1, 2, 4])

    def forward(self, x, counts):
        stacked, joined = [], []
        for i in paddle.arange(paddle.shape(x)[0]):
            row = x[i]
            stacked.append(row * 2)
            # Paddle 3.3 refuses elements of different sizes.
            joined.append(row[2:5] if paddle.__version__ >= "3" else paddle.gather(row, paddle.nonzero(row[:, 0] > 0).flatten()))
        whole, rows = paddle.stack(stacked), paddle.concat(joined)
        x = x + 0
        x[:, 1:5:2] = 3.0
        x[0, counts[0] : counts[0] + 2] = self.weight[0]
        tiled = paddle.tile(self.weight, [paddle.shape(x)[0], 1, 1])
        return whole, rows, joined[0], x, tiled, *paddle.broadcast_tensors([x, self.weight[:, :1]]), *paddle.split(paddle.concat([x, x]), [1, -1])


MODELS = {
    "arrays": (Arrays, [("x", "float32", [None, 6, 4], ""), ("counts", "int64", [None], "<4")]),
    "ops_activations": (Activations, [X]),
    "ops_creation": (Creation, [X]),
    "ops_elementwise": (Elementwise, [X, Y]),
    "ops_images": (Images, [("image", "float32", [None, 4, 9, 10], "")]),
    "ops_index": (Index, [("x", "float32", [2, 4, 6], ""), ("ids", "int64", [2, 4], "<6")]),
    "ops_logic": (Logic, [X, Y, ("ids", "int64", [None, 4], "<6")]),
    "ops_movement": (Movement, [("x", "float32", [2, 4, 6], ""), ("y", "float32", [2, 4, 6], "")]),
    "ops_products": (Products, [X, Y]),
    "ops_reductions": (Reductions, [X]),
}
