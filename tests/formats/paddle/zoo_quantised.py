"""Networks that paddle.quantization has quantised after training. Paddle 3 exports them for a fixed batch only."""

import paddle
from paddle import nn
from paddle.nn import functional as F
from paddle.quantization import PTQ, QuantConfig
from paddle.quantization.observers import AbsmaxObserver


class Small(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.deep, self.second, self.head = nn.Conv2D(3, 8, 3, 2, 1), nn.Conv2D(8, 8, 3, padding=1, groups=8), nn.Conv2D(8, 16, 1), nn.Linear(16, 10)

    def forward(self, image):
        x = F.relu(self.second(F.relu(self.deep(F.relu(self.first(image))))))
        return self.head(x.mean([2, 3]))


class Mlp(nn.Layer):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(24, 32), nn.Linear(32, 32), nn.Linear(32, 6)

    def forward(self, x):
        return self.c(F.gelu(self.b(F.relu(self.a(x)))))


def quantised(make, shape):
    """Observes drawn inputs, and makes quantize_linear and dequantize_linear of the ranges."""

    def build(draw):
        net = make()
        net.eval()
        draw(net)
        quantiser = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver()))
        observed = quantiser.quantize(net)
        observed(paddle.uniform(shape, min=-2.0, max=2.0))
        return quantiser.convert(observed)

    return build


BATCH = 2 if paddle.__version__ >= "3" else None
MODELS = {
    "quantised_conv": (quantised(Small, [4, 3, 16, 16]), [("image", "float32", [BATCH, 3, 16, 16], "")]),
    "quantised_mlp": (quantised(Mlp, [16, 24]), [("x", "float32", [BATCH, 24], "")]),
}
