"""Images in, maps or boxes out: segmentation, detection, optical flow; and video.

The detectors give what their heads compute, before non-maximum suppression: boxes that two engines sort differently by a last bit cannot be
compared. Suppression itself is a model of its own with fixed boxes.
"""

import torch
import torchvision
from torch import nn
from torchvision.models import detection, segmentation

from zoo.exporters import Wrapped, dynamo, torchscript
from zoo.vision import batched, images


def segmenter(module, size, opset, export=torchscript):
    return batched(Wrapped(module, lambda m, x: m(x)["out"]), images(size), ["mask"], opset, export)


def narrow_backbone():
    """ResNet-18's first stages, for the detectors."""
    return torchvision.models.resnet18(norm_layer=nn.BatchNorm2d)


def ssdlite():
    module = detection.ssdlite320_mobilenet_v3_large(num_classes=21, weights=None, weights_backbone=None)

    def forward(m, x):
        features = list(m.backbone(x).values())
        head = m.head(features)
        return head["bbox_regression"], head["cls_logits"]

    return batched(Wrapped(module, forward), images(160), ["boxes", "logits"], 14)


def fpn_detector(kind):
    from torchvision.models.detection.backbone_utils import _resnet_fpn_extractor

    backbone = _resnet_fpn_extractor(narrow_backbone(), 5)
    anchors = detection.rpn.AnchorGenerator(sizes=((16,), (32,), (64,), (128,), (256,)), aspect_ratios=((0.5, 1.0, 2.0),) * 5)
    return kind(backbone, num_classes=11, rpn_anchor_generator=anchors)


PROPOSALS = torch.tensor([[4.0, 6.0, 50.0, 70.0], [10.0, 2.0, 90.0, 40.0], [30.0, 30.0, 60.0, 62.0], [0.0, 0.0, 95.0, 95.0]])


def region_proposals():
    """The first stage of Faster R-CNN: a feature pyramid, objectness and deltas of each anchor."""
    module = fpn_detector(detection.FasterRCNN)

    def forward(m, x):
        objectness, deltas = m.rpn.head(list(m.backbone(x).values()))
        return (*objectness, *deltas)

    names = [f"{kind}_{level}" for kind in ("objectness", "deltas") for level in range(5)]
    return batched(Wrapped(module, forward), images(96), names, 16)


def second_stage():
    """The second stage of Mask R-CNN on given proposals: RoiAlign on each level, classes, boxes and masks."""
    module = fpn_detector(detection.MaskRCNN)
    for pool in (module.roi_heads.box_roi_pool, module.roi_heads.mask_roi_pool):
        pool.canonical_scale = 32  # so that proposals in an image of 96 fall on every level

    def forward(m, x, proposals):
        features = m.backbone(x)
        sizes = [(96, 96)]
        pooled = m.roi_heads.box_head(m.roi_heads.box_roi_pool(features, [proposals], sizes))
        logits, boxes = m.roi_heads.box_predictor(pooled)
        masks = m.roi_heads.mask_predictor(m.roi_heads.mask_head(m.roi_heads.mask_roi_pool(features, [proposals], sizes)))
        return logits, boxes, masks

    inputs = {"image": torch.zeros(1, 3, 96, 96), "proposals": PROPOSALS}
    dynamic = {"proposals": {0: "boxes"}, "logits": {0: "boxes"}, "deltas": {0: "boxes"}, "masks": {0: "boxes"}}
    return torchscript(Wrapped(module, forward), inputs, ["logits", "deltas", "masks"], dynamic, 16)


class Suppression(nn.Module):
    """What detectors end with: the best class of each box, suppression by class, the best 20 of what is left."""

    def forward(self, boxes, scores):
        best, label = scores.max(1)
        keep = torchvision.ops.batched_nms(boxes, best, label, 0.5)[:20]
        return boxes[keep], best[keep], label[keep]


def suppression():
    inputs = {"boxes": torch.rand(50, 4).sort(1).values, "scores": torch.rand(50, 7)}
    return torchscript(Suppression(), inputs, ["kept", "score", "label"], {"boxes": {0: "n"}, "scores": {0: "n"}}, 14)


class ConvSilu(nn.Sequential):
    def __init__(self, c_in, c_out, k=1, stride=1):
        super().__init__(nn.Conv2d(c_in, c_out, k, stride, k // 2, bias=False), nn.BatchNorm2d(c_out), nn.SiLU())


class Csp(nn.Module):
    """YOLOv8's C2f: split the channels, pass one half through bottlenecks, concatenate every stage."""

    def __init__(self, c_in, c_out, depth=1, residual=True):
        super().__init__()
        self.half, self.residual = c_out // 2, residual
        self.entry, self.exit = ConvSilu(c_in, c_out), ConvSilu((2 + depth) * self.half, c_out)
        self.blocks = nn.ModuleList(
            nn.Sequential(ConvSilu(self.half, self.half, 3), ConvSilu(self.half, self.half, 3)) for _ in range(depth)
        )

    def forward(self, x):
        parts = list(self.entry(x).split(self.half, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]) if self.residual else block(parts[-1]))
        return self.exit(torch.cat(parts, 1))


class Yolo(nn.Module):
    """A narrow YOLOv8: CSP backbone, SPPF, a path up and down, and the head that decodes distances to boxes."""

    def __init__(self, classes=8, w=16, bins=8):
        super().__init__()
        self.classes, self.bins, self.strides = classes, bins, (8, 16, 32)
        self.stem = nn.Sequential(ConvSilu(3, w, 3, 2), ConvSilu(w, 2 * w, 3, 2), Csp(2 * w, 2 * w))
        self.stages = nn.ModuleList(nn.Sequential(ConvSilu(c, 2 * c, 3, 2), Csp(2 * c, 2 * c)) for c in (2 * w, 4 * w, 8 * w))
        self.reduce, self.widen = ConvSilu(16 * w, 8 * w), ConvSilu(32 * w, 16 * w)
        self.up = nn.ModuleList([Csp(24 * w, 8 * w, residual=False), Csp(12 * w, 4 * w, residual=False)])
        self.step = nn.ModuleList([ConvSilu(4 * w, 4 * w, 3, 2), ConvSilu(8 * w, 8 * w, 3, 2)])
        self.down = nn.ModuleList([Csp(12 * w, 8 * w, residual=False), Csp(24 * w, 16 * w, residual=False)])
        head = lambda c, out: nn.Sequential(ConvSilu(c, 2 * w, 3), ConvSilu(2 * w, 2 * w, 3), nn.Conv2d(2 * w, out, 1))  # noqa: E731
        self.box = nn.ModuleList(head(c, 4 * bins) for c in (4 * w, 8 * w, 16 * w))
        self.kind = nn.ModuleList(head(c, classes) for c in (4 * w, 8 * w, 16 * w))
        self.register_buffer("ladder", torch.arange(bins, dtype=torch.float32).view(1, 1, bins, 1))

    def pool(self, x):
        parts = [self.reduce(x)]
        for _ in range(3):
            parts.append(nn.functional.max_pool2d(parts[-1], 5, 1, 2))
        return self.widen(torch.cat(parts, 1))

    def decode(self, maps):
        boxes, kinds = [], []
        for x, box, kind, stride in zip(maps, self.box, self.kind, self.strides):
            n, _, h, w = x.shape
            distance = (box(x).view(n, 4, self.bins, h * w).softmax(2) * self.ladder).sum(2)
            ys, xs = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            centre = torch.stack([xs.flatten(), ys.flatten()])[None]
            low, high = centre - distance[:, :2], centre + distance[:, 2:]
            boxes.append(torch.cat([(low + high) / 2, high - low], 1) * stride)
            kinds.append(kind(x).view(n, self.classes, h * w).sigmoid())
        return torch.cat(boxes, 2), torch.cat(kinds, 2)  # apart: beside pixels no comparison sees scores

    def forward(self, x):
        c3 = self.stages[0](self.stem(x))
        c4 = self.stages[1](c3)
        c5 = self.pool(self.stages[2](c4))
        twice = lambda t: nn.functional.interpolate(t, scale_factor=2.0, mode="nearest")  # noqa: E731
        p4 = self.up[0](torch.cat([twice(c5), c4], 1))
        p3 = self.up[1](torch.cat([twice(p4), c3], 1))
        n4 = self.down[0](torch.cat([self.step[0](p3), p4], 1))
        n5 = self.down[1](torch.cat([self.step[1](n4), c5], 1))
        return self.decode([p3, n4, n5])


def optical_flow():
    """RAFT, small, two refinements: GridSample, a ConvGRU, InstanceNorm."""
    module = torchvision.models.optical_flow.raft_small()
    inputs = {"before": torch.zeros(1, 3, 128, 128), "after": torch.zeros(1, 3, 128, 128)}
    return torchscript(Wrapped(module, lambda m, a, b: m(a, b, num_flow_updates=2)[-1]), inputs, ["flow"], {}, 17)


def video():
    module = torchvision.models.video.r3d_18(num_classes=40)
    return batched(module, {"clip": torch.zeros(2, 3, 4, 32, 32)}, ["scores"], 13)


def lraspp():
    return segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, num_classes=11)


def fcn():
    return segmentation.fcn_resnet50(weights_backbone=None, num_classes=11)


def deeplab():
    return segmentation.deeplabv3_mobilenet_v3_large(weights_backbone=None, num_classes=11)


MODELS = {
    "fcn_resnet50": lambda: segmenter(fcn(), 64, 12),
    "deeplabv3": lambda: segmenter(deeplab(), 64, 14),
    "lraspp": lambda: segmenter(lraspp(), 96, 13),
    "lraspp_dynamo": lambda: segmenter(lraspp(), 96, 18, dynamo),
    "ssdlite": ssdlite,
    "faster_rcnn_proposals": region_proposals,
    "mask_rcnn_heads": second_stage,
    "suppression": suppression,
    "yolo": lambda: batched(Yolo(), images(96), ["boxes", "scores"], 13),
    "yolo_dynamo": lambda: batched(Yolo(), images(96), ["boxes", "scores"], 19, dynamo),
    "raft_small": optical_flow,
    "video_r3d_18": video,
}
