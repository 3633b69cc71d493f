"""torchvision's classification families and the networks that are written by hand here, as images in, numbers out."""

import torch
import torchvision.models as tv
from torch import nn

from zoo.exporters import dynamo, torchscript


def images(size, channels=3):
    return {"image": torch.zeros(2, channels, size, size)}


def classifier(module, size, opset, export=torchscript):
    dynamic = {"image": {0: "batch"}}
    if export is torchscript:
        dynamic["scores"] = {0: "batch"}
    return export(module, images(size), ["scores"], dynamic, opset)


def vgg11_bn():
    module = tv.vgg11_bn()  # its three giant linear layers are 120 M of 133 M weights: narrower here
    module.avgpool = nn.AdaptiveAvgPool2d(1)
    module.classifier = nn.Sequential(nn.Linear(512, 256), nn.ReLU(True), nn.Dropout(), nn.Linear(256, 100))
    return module


def small_vit():
    return tv.VisionTransformer(image_size=64, patch_size=16, num_layers=3, num_heads=3, hidden_dim=96, mlp_dim=192, num_classes=100)


def small_swin(block="v1"):
    from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformer, SwinTransformerBlockV2

    extra = {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2} if block == "v2" else {}
    return SwinTransformer(
        patch_size=[4, 4], embed_dim=48, depths=[2, 2, 2], num_heads=[3, 6, 12], window_size=[4, 4], num_classes=100, **extra
    )


def small_maxvit():
    return tv.MaxVit(
        input_size=(64, 64),
        stem_channels=16,
        block_channels=[16, 32],
        block_layers=[1, 2],
        head_dim=8,
        stochastic_depth_prob=0.0,
        partition_size=4,
        num_classes=100,
    )


class UNet(nn.Module):
    """Down three times, up three times, with the skips concatenated; transposed convolutions go up."""

    def __init__(self, width=16):
        super().__init__()
        w = [width, 2 * width, 4 * width, 8 * width]
        self.down = nn.ModuleList([self.double(3, w[0]), self.double(w[0], w[1]), self.double(w[1], w[2])])
        self.bottom = self.double(w[2], w[3])
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * c, c, 2, stride=2) for c in reversed(w[:3]))
        self.merge = nn.ModuleList(self.double(2 * c, c) for c in reversed(w[:3]))
        self.head = nn.Conv2d(w[0], 5, 1)

    @staticmethod
    def double(c_in, c_out):
        layers = []
        for c in (c_in, c_out):
            layers += [nn.Conv2d(c, c_out, 3, padding=1), nn.BatchNorm2d(c_out), nn.ReLU(True)]
        return nn.Sequential(*layers)

    def forward(self, x):
        skips = []
        for down in self.down:
            x = down(x)
            skips.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.bottom(x)
        for up, merge, skip in zip(self.up, self.merge, reversed(skips)):
            x = merge(torch.cat([skip, up(x)], 1))
        return self.head(x)


class Upscaler(nn.Module):
    """ESPCN: convolutions at low resolution, PixelShuffle to three times the size, a bicubic skip."""

    def __init__(self, factor=3):
        super().__init__()
        self.factor = factor
        self.body = nn.Sequential(
            nn.Conv2d(3, 48, 5, padding=2),
            nn.PReLU(48),
            nn.Conv2d(48, 32, 3, padding=1),
            nn.PReLU(),
            nn.Conv2d(32, 3 * factor**2, 3, padding=1),
            nn.PixelShuffle(factor),
        )

    def forward(self, x):
        return self.body(x) + nn.functional.interpolate(x, scale_factor=self.factor, mode="bicubic", align_corners=False)


class Generator(nn.Module):
    """DCGAN's generator: noise to an image by transposed convolutions."""

    def __init__(self, noise=64, width=32):
        super().__init__()
        layers, c_in = [], noise
        for i, c in enumerate([8 * width, 4 * width, 2 * width, width]):
            layers += [
                nn.ConvTranspose2d(c_in, c, 4, 1 if i == 0 else 2, 0 if i == 0 else 1, bias=False),
                nn.BatchNorm2d(c),
                nn.LeakyReLU(0.2),
            ]
            c_in = c
        self.layers = nn.Sequential(*layers, nn.ConvTranspose2d(c_in, 3, 4, 2, 1), nn.Tanh())

    def forward(self, noise):
        return self.layers(noise[:, :, None, None])


class Autoencoder(nn.Module):
    """Strided convolutions with ELU down to a code of 32, and back by transposed ones with output_padding."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.ELU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ELU(), nn.Flatten(), nn.Linear(32 * 49, 32)
        )
        self.decoder = nn.Sequential(
            nn.Linear(32, 32 * 49),
            nn.ELU(),
            nn.Unflatten(1, (32, 7, 7)),
            nn.ConvTranspose2d(32, 16, 3, 2, 1, output_padding=1),
            nn.Softplus(),
            nn.ConvTranspose2d(16, 1, 3, 2, 1, output_padding=1),
        )

    def forward(self, image):
        code = self.encoder(image)
        return code, self.decoder(code)


class StyleTransfer(nn.Module):
    """Johnson's network, small: reflection padding, InstanceNorm, residual blocks, nearest upsampling."""

    def __init__(self, width=16):
        super().__init__()
        self.entry = nn.Sequential(*self.step(3, width, 9, 1), *self.step(width, 2 * width, 3, 2))
        self.blocks = nn.ModuleList(
            nn.Sequential(*self.step(2 * width, 2 * width, 3, 1), *self.step(2 * width, 2 * width, 3, 1)[:3]) for _ in range(2)
        )
        self.exit = nn.Sequential(
            nn.Upsample(scale_factor=2), *self.step(2 * width, width, 3, 1), nn.ReflectionPad2d(4), nn.Conv2d(width, 3, 9)
        )

    @staticmethod
    def step(c_in, c_out, k, stride):
        return [nn.ReflectionPad2d(k // 2), nn.Conv2d(c_in, c_out, k, stride, bias=False), nn.InstanceNorm2d(c_out, affine=True), nn.ReLU()]

    def forward(self, x):
        x = self.entry(x)
        for block in self.blocks:
            x = x + block(x)
        return self.exit(x)


def batched(module, inputs, outputs, opset, export=torchscript):
    """Axis 0 of everything is the batch."""
    names = [*inputs, *(outputs if export is torchscript else [])]
    return export(module, inputs, outputs, {name: {0: "batch"} for name in names}, opset)


MODELS = {
    "alexnet": lambda: classifier(tv.alexnet(num_classes=100), 224, 11),
    "vgg11_bn": lambda: classifier(vgg11_bn(), 64, 9),
    "resnet18": lambda: classifier(tv.resnet18(), 96, 13),
    "resnet18_dynamo": lambda: classifier(tv.resnet18(), 96, 18, dynamo),
    "resnet50": lambda: classifier(tv.resnet50(), 224, 17),
    "resnext50_32x4d": lambda: classifier(tv.resnext50_32x4d(), 64, 12),
    "wide_resnet50_2": lambda: classifier(tv.wide_resnet50_2(), 64, 13),
    "squeezenet1_1": lambda: classifier(tv.squeezenet1_1(), 96, 11),
    "densenet121": lambda: classifier(tv.densenet121(), 64, 14),
    "googlenet": lambda: classifier(tv.googlenet(aux_logits=False, init_weights=False), 96, 15),
    "inception_v3": lambda: classifier(tv.inception_v3(aux_logits=False, init_weights=False), 139, 16),
    "shufflenet_v2_x1_0": lambda: classifier(tv.shufflenet_v2_x1_0(), 96, 17),
    "mobilenet_v2": lambda: classifier(tv.mobilenet_v2(), 96, 13),
    "mobilenet_v3_small": lambda: classifier(tv.mobilenet_v3_small(), 96, 14),
    "mobilenet_v3_large": lambda: classifier(tv.mobilenet_v3_large(), 224, 17),
    "mobilenet_v3_small_dynamo": lambda: classifier(tv.mobilenet_v3_small(), 96, 20, dynamo),
    "mnasnet1_0": lambda: classifier(tv.mnasnet1_0(), 96, 12),
    "regnet_x_400mf": lambda: classifier(tv.regnet_x_400mf(), 96, 17),
    "regnet_y_400mf": lambda: classifier(tv.regnet_y_400mf(), 96, 18),
    "efficientnet_b0": lambda: classifier(tv.efficientnet_b0(), 224, 17),
    "efficientnet_v2_s": lambda: classifier(tv.efficientnet_v2_s(), 96, 19, dynamo),
    "convnext_tiny": lambda: classifier(tv.convnext_tiny(), 64, 17),
    "vit_b_16": lambda: classifier(tv.vit_b_16(), 224, 17),
    "vit_small": lambda: classifier(small_vit(), 64, 14),
    "vit_small_dynamo": lambda: classifier(small_vit(), 64, 21, dynamo),
    "swin_small": lambda: classifier(small_swin(), 64, 17),
    "swin_v2_small": lambda: classifier(small_swin("v2"), 64, 18),
    "maxvit_small": lambda: classifier(small_maxvit(), 64, 17),
    "regnet_y_1_6gf": lambda: classifier(tv.regnet_y_1_6gf(), 224, 18),
    "regnet_x_1_6gf": lambda: classifier(tv.regnet_x_1_6gf(), 224, 17),
    "convnext_tiny_224": lambda: classifier(tv.convnext_tiny(), 224, 17),
    "densenet121_224": lambda: classifier(tv.densenet121(), 224, 14),
    "shufflenet_v2_224": lambda: classifier(tv.shufflenet_v2_x1_0(), 224, 17),
    "mnasnet1_0_224": lambda: classifier(tv.mnasnet1_0(), 224, 12),
    "resnext50_224": lambda: classifier(tv.resnext50_32x4d(), 224, 12),
    "mobilenet_v2_224": lambda: classifier(tv.mobilenet_v2(), 224, 13),
    "swin_t_224": lambda: classifier(tv.swin_t(), 224, 17),
    "unet": lambda: batched(UNet(), images(64), ["mask"], 13),
    "upscaler": lambda: batched(Upscaler(), images(24), ["image_x3"], 16),
    "gan_generator": lambda: batched(Generator(), {"noise": torch.zeros(2, 64)}, ["image"], 11),
    "autoencoder": lambda: batched(Autoencoder(), images(28, 1), ["code", "again"], 20, dynamo),
    "style_transfer": lambda: batched(StyleTransfer(), images(48), ["styled"], 14),
}
