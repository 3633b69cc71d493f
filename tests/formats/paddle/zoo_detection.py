"""Detectors and readers of text, as PaddleDetection and PaddleOCR have them, small. Suppression is in the graph."""

import paddle
from paddle import nn
from paddle.base.layer_helper import LayerHelper
from paddle.nn import functional as F
from paddle.vision import ops

from zoo_vision import ConvBn, SqueezeExcite


def multiclass_nms(boxes, scores, score_threshold=0.3, nms_top_k=20, keep_top_k=8, nms_threshold=0.5, normalized=True, background=-1, rois_num=None):
    if paddle.__version__ >= "3" or paddle.in_dynamic_mode():
        out, _, count = paddle._C_ops.multiclass_nms3(boxes, scores, None, score_threshold, nms_top_k, keep_top_k, nms_threshold, normalized, 1.0, background)
        return out, count
    helper = LayerHelper("multiclass_nms3")
    out, index, count = (helper.create_variable_for_type_inference(dtype) for dtype in (boxes.dtype, "int32", "int32"))
    helper.append_op(
        type="multiclass_nms3",
        inputs={"BBoxes": boxes, "Scores": scores, **({} if rois_num is None else {"RoisNum": rois_num})},
        attrs={
            "background_label": background, "score_threshold": score_threshold, "nms_top_k": nms_top_k, "nms_threshold": nms_threshold,
            "keep_top_k": keep_top_k, "nms_eta": 1.0, "normalized": normalized,
        },
        outputs={"Out": out, "Index": index, "NmsRoisNum": count},
    )
    return out, count


class Backbone(nn.Layer):
    def __init__(self, w=8, act=nn.Hardswish):
        super().__init__()
        self.stem = ConvBn(3, w, 3, 2, act=act)
        self.stages = nn.LayerList(
            [nn.Sequential(ConvBn(i, o, 3, 2, act=act), ConvBn(o, o, 5, 1, o, act), SqueezeExcite(o), nn.Conv2D(o, o, 1)) for i, o in ((w, 2 * w), (2 * w, 2 * w), (2 * w, 4 * w))]
        )

    def forward(self, image):
        x, results = self.stem(image), []
        for stage in self.stages:
            x = stage(x)
            results.append(x)
        return results


class DbDetector(nn.Layer):
    """PP-OCR's detector of text: a pyramid, and a head of transposed convolutions."""

    def __init__(self, w=8):
        super().__init__()
        self.backbone = Backbone(w)
        self.side = nn.LayerList([nn.Conv2D(i, 16, 1, bias_attr=False) for i in (2 * w, 2 * w, 4 * w)])
        self.smooth = nn.LayerList([nn.Conv2D(16, 8, 3, padding=1, bias_attr=False) for _ in range(3)])
        self.conv = ConvBn(24, 8)
        self.up1, self.norm, self.up2 = nn.Conv2DTranspose(8, 8, 2, 2), nn.BatchNorm2D(8), nn.Conv2DTranspose(8, 1, 2, 2)

    def forward(self, image):
        a, b, c = (side(x) for side, x in zip(self.side, self.backbone(image)))
        b = b + F.interpolate(c, scale_factor=2, mode="nearest")
        a = a + F.interpolate(b, scale_factor=2, mode="nearest")
        a, b, c = (smooth(x) for smooth, x in zip(self.smooth, (a, b, c)))
        x = paddle.concat([F.interpolate(c, scale_factor=4, mode="nearest"), F.interpolate(b, scale_factor=2, mode="nearest"), a], axis=1)
        return F.sigmoid(self.up2(F.relu(self.norm(self.up1(self.conv(x))))))


class Crnn(nn.Layer):
    def __init__(self, w=8):
        super().__init__()
        self.conv = nn.Sequential(ConvBn(3, w, 3, 2), ConvBn(w, 2 * w), nn.MaxPool2D((2, 1), (2, 1)), ConvBn(2 * w, 2 * w), nn.MaxPool2D((2, 1), (2, 1)), ConvBn(2 * w, 4 * w), nn.MaxPool2D((4, 1), (4, 1)))
        self.rnn = nn.LSTM(4 * w, 16, num_layers=2, direction="bidirectional")
        self.head = nn.Linear(32, 20)

    def forward(self, image):
        x = self.conv(image)
        assert x.shape[2] == 1
        y, _ = self.rnn(x.squeeze(axis=2).transpose([0, 2, 1]))
        return F.softmax(self.head(y) * 4, axis=2)


class Svtr(nn.Layer):
    def __init__(self, width=24):
        super().__init__()
        self.patch = nn.Sequential(ConvBn(3, 12, 3, 2, act=nn.GELU), ConvBn(12, width, 3, 2, act=nn.GELU))
        self.place = self.create_parameter([1, 8 * 16, width])
        self.norm = nn.LayerList([nn.LayerNorm(width, epsilon=1e-6) for _ in range(4)])
        self.qkv, self.proj = nn.LayerList([nn.Linear(width, 3 * width) for _ in range(2)]), nn.LayerList([nn.Linear(width, width) for _ in range(2)])
        self.mlp = nn.LayerList([nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width)) for _ in range(2)])
        mask = paddle.ones([8 * 16, 8 * 16]) * -1e4
        rows = paddle.arange(8 * 16) // 16
        near = (rows.unsqueeze(0) - rows.unsqueeze(1)).abs() <= 1
        self.register_buffer("mask", paddle.where(near, paddle.zeros_like(mask), mask).unsqueeze([0, 1]))
        self.conv = nn.Conv2D(width, 16, 1, bias_attr=False)
        self.head = nn.Linear(16, 20)

    def attend(self, x, i):
        y = self.qkv[i](x).reshape((0, -1, 3, 3, 8)).transpose((2, 0, 3, 1, 4))
        q, k, v = y[0] * 8**-0.5, y[1], y[2]
        scores = q.matmul(k.transpose((0, 1, 3, 2)))
        if i == 0:
            scores = scores + self.mask
        return self.proj[i](F.softmax(scores, axis=-1).matmul(v).transpose((0, 2, 1, 3)).reshape((0, -1, 24)))

    def forward(self, image):
        x = self.patch(image).flatten(2).transpose((0, 2, 1)) + self.place
        for i in range(2):
            x = x + self.attend(self.norm[2 * i](x), i)
            x = x + self.mlp[i](self.norm[2 * i + 1](x))
        x = F.adaptive_avg_pool2d(x.transpose([0, 2, 1]).reshape([0, 24, 8, 16]), [1, 16])
        return self.head(F.hardswish(self.conv(x)).squeeze(axis=2).transpose((0, 2, 1)))


class YoloV3(nn.Layer):
    anchors = [10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59, 119]

    def __init__(self, classes=3):
        super().__init__()
        self.backbone = Backbone(act=lambda: nn.LeakyReLU(0.1))
        self.heads = nn.LayerList([nn.Conv2D(i, 3 * (5 + classes), 1) for i in (16, 32)])
        self.classes = classes

    def forward(self, image, im_size):
        boxes, scores = [], []
        for i, (x, stride) in enumerate(zip(self.backbone(image)[1:], (8, 16))):
            b, s = ops.yolo_box(self.heads[i](x), im_size, self.anchors[i], self.classes, 0.3, stride, True, scale_x_y=1.05 if i else 1.0)
            boxes.append(b)
            scores.append(s.transpose([0, 2, 1]))
        return multiclass_nms(paddle.concat(boxes, 1), paddle.concat(scores, 2), normalized=False)


class PpYoloe(nn.Layer):
    """A head without anchors: distances as the mean of a distribution."""

    def __init__(self, classes=4, bins=5):
        super().__init__()
        self.backbone = Backbone(act=nn.Swish)
        self.classify = nn.LayerList([nn.Conv2D(i, classes, 3, padding=1) for i in (16, 16, 32)])
        self.distance = nn.LayerList([nn.Conv2D(i, 4 * bins, 3, padding=1) for i in (16, 16, 32)])
        self.bins, self.classes = bins, classes
        places, strides = [], []
        for size, stride in ((16, 4), (8, 8), (4, 16)):
            y, x = paddle.meshgrid(paddle.arange(size), paddle.arange(size))
            places.append(paddle.stack([x, y], -1).reshape([-1, 2]).astype("float32") + 0.5)
            strides.append(paddle.full([size * size, 1], stride, "float32"))
        self.register_buffer("places", paddle.concat(places))
        self.register_buffer("strides", paddle.concat(strides))
        self.register_buffer("bin", paddle.arange(bins).astype("float32").reshape([1, bins, 1, 1]))

    def forward(self, image, scale_factor):
        scores, distances = [], []
        for x, classify, distance in zip(self.backbone(image), self.classify, self.distance):
            scores.append(F.sigmoid(classify(x)).reshape([-1, self.classes, x.shape[2] * x.shape[3]]))
            d = distance(x).reshape([-1, 4, self.bins, x.shape[2] * x.shape[3]]).transpose([0, 2, 3, 1])
            distances.append((F.softmax(d, axis=1) * self.bin).sum(axis=1))
        low, high = paddle.split(paddle.concat(distances, 1), 2, -1)
        boxes = paddle.concat([self.places - low, self.places + high], -1) * self.strides
        height, width = paddle.split(scale_factor, 2, -1)
        boxes = boxes / paddle.concat([width, height, width, height], -1).reshape([-1, 1, 4])
        return multiclass_nms(boxes, paddle.concat(scores, -1), 0.4, 100, 10, 0.6)


class Ssd(nn.Layer):
    def __init__(self, classes=4):
        super().__init__()
        self.backbone = Backbone(act=nn.ReLU6)
        self.boxes = nn.LayerList([nn.Conv2D(i, 4 * 4, 3, padding=1) for i in (16, 32)])
        self.scores = nn.LayerList([nn.Conv2D(i, 4 * classes, 3, padding=1) for i in (16, 32)])
        self.classes = classes

    def forward(self, image):
        priors, variances, boxes, scores = [], [], [], []
        for i, x in enumerate(self.backbone(image)[1:]):
            p, v = ops.prior_box(x, image, [10.0 + 20 * i], [30.0 + 20 * i], [2.0], flip=True, clip=bool(i), min_max_aspect_ratios_order=not i)
            priors.append(p.reshape([-1, 4]))
            variances.append(v.reshape([-1, 4]))
            boxes.append(self.boxes[i](x).transpose([0, 2, 3, 1]).reshape([0, -1, 4]))
            scores.append(self.scores[i](x).transpose([0, 2, 3, 1]).reshape([0, -1, self.classes]))
        decoded = ops.box_coder(paddle.concat(priors), paddle.concat(variances), paddle.concat(boxes, 1), "decode_center_size")
        return multiclass_nms(decoded, F.softmax(paddle.concat(scores, 1), -1).transpose([0, 2, 1]), 0.2, 30, 8, 0.45, background=0)


class MatrixNms(nn.Layer):
    """PP-YOLOv2: scores that overlap decay."""

    def __init__(self, gaussian=False, classes=3):
        super().__init__()
        self.backbone = Backbone(act=nn.Mish)
        self.head = nn.Conv2D(32, 3 * (6 + classes), 1)
        self.gaussian, self.classes = gaussian, classes

    def forward(self, image, im_size):
        x = self.head(self.backbone(image)[-1])
        boxes, scores = ops.yolo_box(x, im_size, [30, 61, 62, 45, 59, 119], self.classes, 0.2, 16, True, scale_x_y=1.05, iou_aware=True, iou_aware_factor=0.4)
        out, count = ops.matrix_nms(boxes, scores.transpose([0, 2, 1]), 0.2, 0.25, 20, 8, self.gaussian, 2.0, -1, False, False, True)[:2]
        return out, count


class RoiHead(nn.Layer):
    """Proposals spread over a pyramid, aligned and classified: the second half of Faster R-CNN."""

    def __init__(self, classes=4):
        super().__init__()
        self.backbone = Backbone(act=nn.ReLU)
        self.side = nn.LayerList([nn.Conv2D(i, 16, 1) for i in (16, 16)])
        self.fc1, self.score, self.delta = nn.Linear(16 * 9, 32), nn.Linear(32, classes), nn.Linear(32, 4)

    def forward(self, image, rois, rois_num):
        levels, restore, counts = ops.distribute_fpn_proposals(rois, 2, 3, 3, 32, rois_num=rois_num)
        parts = [
            ops.roi_align(side(x), level, count, 3, scale, 2, aligned=True)
            for x, side, level, count, scale in zip(self.backbone(image)[:2], self.side, levels, counts, (0.25, 0.125))
        ]
        x = paddle.gather(paddle.concat(parts), restore)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.score(x), self.delta(x)


class FasterRcnn(nn.Layer):
    """Proposals, their pyramid, a head with boxes for each class, and suppression of boxes in a list."""

    def __init__(self, classes=3):
        super().__init__()
        self.backbone = Backbone(act=nn.ReLU)
        self.rpn, self.objects, self.deltas = nn.Conv2D(16, 16, 3, padding=1), nn.Conv2D(16, 3, 1), nn.Conv2D(16, 12, 1)
        self.fc, self.score, self.box = nn.Linear(16 * 9, 32), nn.Linear(32, classes + 1), nn.Linear(32, 4 * classes)
        self.classes = classes
        y, x = paddle.meshgrid(paddle.arange(8), paddle.arange(8))
        centre = paddle.stack([x, y, x, y], -1).astype("float32").unsqueeze(2) * 8 + 4
        half = paddle.to_tensor([[8.0, 8.0], [12.0, 6.0], [6.0, 12.0]])
        self.register_buffer("anchors", centre + paddle.concat([-half, half], -1))
        self.register_buffer("variances", paddle.ones_like(self.anchors))

    def forward(self, image, im_shape):
        a, b = self.backbone(image)[:2]
        x = F.relu(self.rpn(b))
        rois, _, count = ops.generate_proposals(F.sigmoid(self.objects(x)), self.deltas(x) * 0.3, im_shape, self.anchors, self.variances, 60, 8, 0.6, 2.0, pixel_offset=False, return_rois_num=True)
        levels, restore, counts = ops.distribute_fpn_proposals(rois, 2, 3, 3, 16, rois_num=count)
        parts = [ops.roi_align(feature, level, n, 3, scale, 2) for feature, level, n, scale in zip((a, b), levels, counts, (0.25, 0.125))]
        y = F.relu(self.fc(paddle.gather(paddle.concat(parts), restore).flatten(1)))
        scores = F.softmax(self.score(y) * 2, -1)[:, :-1]
        boxes = rois.unsqueeze(1) + self.box(y).reshape([-1, self.classes, 4])
        arguments = (0.1, -1, 6, 0.4, False, 1.0, -1)
        if paddle.__version__ >= "3" or paddle.in_dynamic_mode():
            out, _, total = paddle._C_ops.multiclass_nms3(boxes, scores, count, *arguments)
            return out, total
        return multiclass_nms(boxes, scores, 0.1, -1, 6, 0.4, False, -1, count)


class Deformable(nn.Layer):
    """Deformable convolution with a mask, a grid that is sampled, and a pool with indices."""

    def __init__(self, w=8):
        super().__init__()
        self.stem = ConvBn(3, w, 3, 2)
        self.offset, self.weight = nn.Conv2D(w, 27, 3, padding=1), self.create_parameter([w, w, 3, 3])
        self.theta, self.head = nn.Linear(w, 6), nn.Linear(w, 10)

    def forward(self, image):
        x = self.stem(image)
        offset, mask = paddle.split(self.offset(x), [18, 9], axis=1)
        y = F.relu(ops.deform_conv2d(x, offset, self.weight, mask=F.sigmoid(mask), padding=1))
        theta = self.theta(y.mean([2, 3])).reshape([-1, 2, 3]) * 0.3
        grid = F.affine_grid(theta, [2, 8, 6, 6], align_corners=False)
        z = F.grid_sample(y, grid, align_corners=False, padding_mode="border")
        return self.head(z.max([2, 3]) + F.max_pool2d(y, 4, 4).mean([2, 3]))


class Space(nn.Layer):
    """YOLOv5's focus, TSM-like slices, and other ways to move pixels."""

    def __init__(self):
        super().__init__()
        self.focus, self.conv, self.head = nn.Conv2D(12, 8, 3, padding=1), nn.Conv2D(32, 8, 1), nn.Linear(8, 10)

    def forward(self, image):
        x = paddle.concat([image[:, :, ::2, ::2], image[:, :, 1::2, ::2], image[:, :, ::2, 1::2], image[:, :, 1::2, 1::2]], 1)
        x = F.silu(self.focus(x))
        x = F.pixel_unshuffle(F.channel_shuffle(x, 2), 2)
        x = paddle.flip(F.softplus(self.conv(x)), [3])
        y = F.unfold(x, 3, 2, 1).reshape([0, 8, 9, -1])
        value, _ = paddle.topk(y.mean(2), 3, axis=-1)
        return self.head(value.mean(-1) + paddle.logsumexp(x, [2, 3]))


IMAGE = ("image", "float32", [None, 3, 64, 64], "")
MODELS = {
    "crnn": (Crnn, [("x", "float32", [None, 3, 32, 40], "")]),
    "db_detector": (DbDetector, [("x", "float32", [None, 3, "height=64", "width=64"], "")]),
    "deformable": (Deformable, [("image", "float32", [2, 3, 32, 32], "")]),
    "faster_rcnn": (FasterRcnn, [IMAGE, ("im_shape", "float32", [None, 2], "whole64")]),
    "matrix_nms": (MatrixNms, [IMAGE, ("im_size", "int32", [None, 2], "sizes")]),
    "matrix_nms_gaussian": (lambda: MatrixNms(True), [IMAGE, ("im_size", "int32", [None, 2], "sizes")]),
    "ppyoloe": (PpYoloe, [IMAGE, ("scale_factor", "float32", [None, 2], "factors")]),
    "roi_head": (RoiHead, [IMAGE, ("rois", "float32", [7, 4], "boxes48"), ("rois_num", "int32", [2], "counts")]),
    "space": (Space, [IMAGE]),
    "ssd": (Ssd, [IMAGE]),
    "svtr": (Svtr, [("x", "float32", [None, 3, 32, 64], "")]),
    "yolov3": (YoloV3, [("image", "float32", [None, 3, "height=64", "width=64"], ""), ("im_size", "int32", [None, 2], "sizes")]),
}
