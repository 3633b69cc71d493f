"""Networks for images: those of paddle.vision, small where they have a width, and some that PaddleClas, PaddleSeg and PaddleGAN have."""

import paddle
from paddle import nn
from paddle.nn import functional as F
from paddle.vision import models

IMAGE = ("image", "float32", [None, 3, 64, 64], "")


class Scaled(nn.Layer):
    """Networks that end in several heads, or need another input."""

    def __init__(self, net, take=0):
        super().__init__()
        self.net, self.take = net, take

    def forward(self, image):
        y = self.net(image)
        return y[self.take] if isinstance(y, (list, tuple)) else y


class Vit(nn.Layer):
    def __init__(self, width=32, layers=2, heads=4):
        super().__init__()
        self.patch = nn.Conv2D(3, width, 16, 16)
        self.cls = self.create_parameter([1, 1, width])
        self.place = self.create_parameter([1, 17, width])
        self.blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, heads, 64, 0.0, "gelu", normalize_before=True), layers)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, image):
        x = self.patch(image).flatten(2).transpose([0, 2, 1])
        x = paddle.concat([self.cls.expand([x.shape[0], -1, -1]), x], axis=1) + self.place
        return self.head(self.norm(self.blocks(x))[:, 0])


class SwinBlock(nn.Layer):
    def __init__(self, width, heads, size, shift):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.heads, self.size, self.shift, self.width = heads, size, shift, width

    def forward(self, x):  # [b, 16, 16, c]
        y = self.norm1(x)
        if self.shift:
            y = paddle.roll(y, [-self.shift, -self.shift], axis=[1, 2])
        n = 16 // self.size
        y = y.reshape([-1, n, self.size, n, self.size, self.width]).transpose([0, 1, 3, 2, 4, 5]).reshape([-1, self.size * self.size, self.width])
        q, k, v = self.qkv(y).reshape([-1, self.size * self.size, 3, self.heads, self.width // self.heads]).transpose([2, 0, 3, 1, 4]).unbind(0)
        y = F.softmax(paddle.matmul(q * (self.width // self.heads) ** -0.5, k, transpose_y=True), -1)
        y = self.proj(paddle.matmul(y, v).transpose([0, 2, 1, 3]).reshape([-1, self.size * self.size, self.width]))
        y = y.reshape([-1, n, n, self.size, self.size, self.width]).transpose([0, 1, 3, 2, 4, 5]).reshape([-1, 16, 16, self.width])
        if self.shift:
            y = paddle.roll(y, [self.shift, self.shift], axis=[1, 2])
        x = x + y
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Swin(nn.Layer):
    def __init__(self, width=24):
        super().__init__()
        self.patch = nn.Conv2D(3, width, 4, 4)
        self.blocks = nn.LayerList([SwinBlock(width, 3, 4, shift) for shift in (0, 2)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, image):
        x = self.patch(image).transpose([0, 2, 3, 1])
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean([1, 2]))


class ConvNext(nn.Layer):
    def __init__(self, width=24):
        super().__init__()
        self.stem = nn.Conv2D(3, width, 4, 4)
        self.deep = nn.LayerList([nn.Conv2D(width, width, 7, padding=3, groups=width) for _ in range(3)])
        self.norm = nn.LayerList([nn.LayerNorm(width, epsilon=1e-6) for _ in range(3)])
        self.up = nn.LayerList([nn.Linear(width, 4 * width) for _ in range(3)])
        self.down = nn.LayerList([nn.Linear(4 * width, width) for _ in range(3)])
        self.head = nn.Linear(width, 10)

    def forward(self, image):
        x = self.stem(image)
        for deep, norm, up, down in zip(self.deep, self.norm, self.up, self.down):
            y = norm(deep(x).transpose([0, 2, 3, 1]))
            x = x + down(F.gelu(up(y))).transpose([0, 3, 1, 2])
        return self.head(x.mean([2, 3]))


class ConvBn(nn.Sequential):
    def __init__(self, ins, outs, kernel=3, stride=1, groups=1, act=nn.ReLU):
        layers = [nn.Conv2D(ins, outs, kernel, stride, kernel // 2, groups=groups, bias_attr=False), nn.BatchNorm2D(outs)]
        super().__init__(*layers, *([act()] if act else []))


class SqueezeExcite(nn.Layer):
    def __init__(self, width):
        super().__init__()
        self.down, self.up = nn.Conv2D(width, width // 4, 1), nn.Conv2D(width // 4, width, 1)

    def forward(self, x):
        y = F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))
        return x * F.hardsigmoid(self.up(y), slope=0.2, offset=0.5)


class LcNet(nn.Layer):
    """PP-LCNet: depthwise separable blocks with hard_swish, and squeeze and excitation at the end."""

    def __init__(self):
        super().__init__()
        self.stem = ConvBn(3, 8, 3, 2, act=nn.Hardswish)
        self.blocks = nn.Sequential(
            *[nn.Sequential(ConvBn(i, i, k, s, i, nn.Hardswish), ConvBn(i, o, 1, act=nn.Hardswish)) for i, o, k, s in ((8, 16, 3, 1), (16, 32, 3, 2), (32, 32, 3, 1))]
        )
        self.last = nn.Sequential(ConvBn(32, 32, 5, 2, 32, nn.Hardswish), SqueezeExcite(32), ConvBn(32, 64, 1, act=nn.Hardswish))
        self.conv, self.head = nn.Conv2D(64, 96, 1, bias_attr=False), nn.Linear(96, 10)

    def forward(self, image):
        x = F.adaptive_avg_pool2d(self.last(self.blocks(self.stem(image))), 1)
        return self.head(paddle.flatten(F.hardswish(self.conv(x)), 1))


class RepVgg(nn.Layer):
    def __init__(self):
        super().__init__()
        self.a = nn.LayerList([ConvBn(i, o, 3, s, act=None) for i, o, s in ((3, 12, 2), (12, 12, 1), (12, 24, 2), (24, 24, 1))])
        self.b = nn.LayerList([ConvBn(i, o, 1, s, act=None) for i, o, s in ((3, 12, 2), (12, 12, 1), (12, 24, 2), (24, 24, 1))])
        self.same = nn.LayerList([nn.BatchNorm2D(12), nn.BatchNorm2D(24)])
        self.head = nn.Linear(24, 10)

    def forward(self, image):
        x = image
        for i in range(4):
            y = self.a[i](x) + self.b[i](x)
            x = F.relu(y + self.same[i // 2](x) if i % 2 else y)
        return self.head(x.mean([2, 3]))


class Unet(nn.Layer):
    def __init__(self, w=8):
        super().__init__()
        self.down = nn.LayerList([nn.Sequential(ConvBn(i, o), ConvBn(o, o)) for i, o in ((3, w), (w, 2 * w), (2 * w, 4 * w))])
        self.up = nn.LayerList([nn.Conv2DTranspose(4 * w, 2 * w, 2, 2), nn.Conv2DTranspose(2 * w, w, 2, 2)])
        self.join = nn.LayerList([nn.Sequential(ConvBn(4 * w, 2 * w), ConvBn(2 * w, 2 * w)), nn.Sequential(ConvBn(2 * w, w), ConvBn(w, w))])
        self.head = nn.Conv2D(w, 2, 1)

    def forward(self, image):
        a = self.down[0](image)
        b = self.down[1](F.max_pool2d(a, 2))
        c = self.down[2](F.max_pool2d(b, 2))
        x = self.join[0](paddle.concat([self.up[0](c), b], 1))
        return self.head(self.join[1](paddle.concat([self.up[1](x), a], 1)))[:, :, ::4, ::4]


class LiteSeg(nn.Layer):
    """PP-LiteSeg and DeepLab: dilated branches, pools of several sizes, bilinear resizing to the size of the input."""

    def __init__(self, w=16):
        super().__init__()
        self.stem = nn.Sequential(ConvBn(3, w, 3, 2), ConvBn(w, w, 3, 2))
        self.dilated = nn.LayerList([nn.Conv2D(w, w, 3, padding=d, dilation=d) for d in (1, 2, 4)])
        self.pools = nn.LayerList([nn.Sequential(nn.AdaptiveAvgPool2D(s), ConvBn(w, w, 1)) for s in (1, 2, 4)])
        self.fuse, self.head = ConvBn(6 * w, w, 3), nn.Conv2D(w, 3, 1)

    def forward(self, image):
        x = self.stem(image)
        size = paddle.shape(x)[2:]
        parts = [F.relu(conv(x)) for conv in self.dilated] + [F.interpolate(pool(x), size, mode="bilinear", align_corners=False) for pool in self.pools]
        y = self.head(self.fuse(paddle.concat(parts, 1)))
        return F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=True)[:, :, ::4, ::4]


class Generator(nn.Layer):
    def __init__(self, w=8):
        super().__init__()
        self.first = nn.Linear(16, 4 * w * 16)
        self.up = nn.LayerList([nn.Conv2DTranspose(4 * w, 2 * w, 4, 2, 1), nn.Conv2DTranspose(2 * w, w, 3, 2, 1, output_padding=1)])
        self.norm = nn.LayerList([nn.BatchNorm2D(2 * w), nn.InstanceNorm2D(w)])
        self.last = nn.Conv2D(w, 3, 5, padding=2, padding_mode="reflect")

    def forward(self, noise):
        x = F.leaky_relu(self.first(noise), 0.2).reshape([-1, 32, 4, 4])
        for up, norm in zip(self.up, self.norm):
            x = F.leaky_relu(norm(up(x)), 0.2)
        return F.tanh(self.last(x)) * 3


class SuperResolution(nn.Layer):
    def __init__(self, w=16):
        super().__init__()
        self.first, self.last = nn.Conv2D(3, w, 3, padding=1), nn.Conv2D(w, 12, 3, padding=1)
        self.body = nn.LayerList([nn.Conv2D(w, w, 3, padding=1) for _ in range(3)])
        self.slope = nn.PReLU(w)
        self.norm = nn.GroupNorm(4, w)

    def forward(self, image):
        x = self.slope(self.first(image))
        for conv in self.body:
            x = x + F.elu(conv(self.norm(x)))
        y = F.pixel_shuffle(self.last(x), 2) + F.interpolate(image, scale_factor=2, mode="bicubic", align_corners=False)
        return F.avg_pool2d(y, 4, 4)


SMALL = ("image", "float32", [None, 3, 16, 16], "")
MODELS = {
    "alexnet_narrow": (lambda: nn.Sequential(nn.Conv2D(3, 16, 11, 4, 2), nn.ReLU(), nn.MaxPool2D(3, 2), nn.Conv2D(16, 32, 5, padding=2), nn.ReLU(), nn.LocalResponseNorm(5), nn.MaxPool2D(3, 2), nn.AdaptiveAvgPool2D(2), nn.Flatten(), nn.Dropout(0.5), nn.Linear(128, 10)), [IMAGE]),
    "convnext": (ConvNext, [IMAGE]),
    "densenet121": (lambda: models.densenet121(num_classes=10), [IMAGE]),
    "googlenet": (lambda: Scaled(models.googlenet(num_classes=10)), [("image", "float32", [None, 3, 224, 224], "")]),
    "inception_v3": (lambda: models.inception_v3(num_classes=10), [("image", "float32", [None, 3, 96, 96], "")]),
    "lcnet": (LcNet, [IMAGE]),
    "lenet": (lambda: models.LeNet(num_classes=10), [("image", "float32", [None, 1, 28, 28], "")]),
    "mobilenet_v1": (lambda: models.mobilenet_v1(scale=0.25, num_classes=10), [IMAGE]),
    "mobilenet_v2": (lambda: models.mobilenet_v2(scale=0.5, num_classes=10), [IMAGE]),
    "mobilenet_v3_large": (lambda: models.mobilenet_v3_large(scale=0.5, num_classes=10), [IMAGE]),
    "mobilenet_v3_small": (lambda: models.mobilenet_v3_small(num_classes=10), [IMAGE]),
    "repvgg": (RepVgg, [IMAGE]),
    "resnet18": (lambda: models.resnet18(num_classes=10), [IMAGE]),
    "resnet50": (lambda: models.resnet50(num_classes=10), [IMAGE]),
    "resnext50_32x4d": (lambda: models.resnext50_32x4d(num_classes=10), [IMAGE]),
    "shufflenet_v2_swish": (lambda: models.shufflenet_v2_swish(num_classes=10), [IMAGE]),
    "shufflenet_v2_x0_25": (lambda: models.shufflenet_v2_x0_25(num_classes=10), [IMAGE]),
    "squeezenet1_0": (lambda: models.squeezenet1_0(num_classes=10), [IMAGE]),
    "squeezenet1_1": (lambda: models.squeezenet1_1(num_classes=10), [IMAGE]),
    "swin": (Swin, [IMAGE]),
    "vgg_narrow": (lambda: nn.Sequential(models.vgg.make_layers([16, "M", 32, "M", 32, 32, "M", 64, 64, "M"], batch_norm=True), nn.AdaptiveAvgPool2D(3), nn.Flatten(), nn.Linear(576, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 10)), [IMAGE]),
    "vit": (Vit, [IMAGE]),
    "unet": (Unet, [("image", "float32", [None, 3, 32, 32], "")]),
    "liteseg": (LiteSeg, [IMAGE]),
    "liteseg_open": (LiteSeg, [("image", "float32", [None, 3, "height=80", "width=48"], "")]),
    "gan_generator": (Generator, [("noise", "float32", [None, 16], "")]),
    "super_resolution": (SuperResolution, [SMALL]),
}
