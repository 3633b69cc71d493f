"""The models: each function gives a Keras model or a tf.Module with signatures, and the inputs that it is asked with.

Keras applications are as they are, with small images. The others have every operator of their kind, and few channels.
"""

import keras
import tensorflow as tf
from keras import layers, ops

MODELS = {}


def model(build):
    MODELS[build.__name__] = build
    return build


def image(size, batch=2, high=2.0):
    return {"*": {"shape": [batch, size, size, 3], "low": -high, "high": high}}


def application(name, build, size, pixels=False, **flags):
    """pixels: the model scales its input from 0 .. 255."""
    inputs = {"*": {"shape": [2, size, size, 3], "low": 0.0, "high": 255.0}} if pixels else image(size)
    MODELS[name] = lambda: (build(weights=None, input_shape=(size, size, 3), classes=10, **flags), inputs)


APPS = keras.applications
application("vgg16", APPS.VGG16, 32, classifier_activation=None)
application("resnet50", APPS.ResNet50, 64)
application("resnet50v2", APPS.ResNet50V2, 64, classifier_activation=None)
application("inception_v3", APPS.InceptionV3, 75)
application("inception_resnet_v2", APPS.InceptionResNetV2, 75)
application("xception", APPS.Xception, 71)
application("mobilenet", APPS.MobileNet, 64, alpha=0.25)
application("mobilenet_v2", APPS.MobileNetV2, 96, alpha=0.35, classifier_activation=None)
application("mobilenet_v3_small", APPS.MobileNetV3Small, 64, pixels=True, classifier_activation=None)
application("mobilenet_v3_large", APPS.MobileNetV3Large, 64, pixels=True)
application("densenet121", APPS.DenseNet121, 64, classifier_activation=None)
application("nasnet_mobile", APPS.NASNetMobile, 64)
application("efficientnet_b0", APPS.EfficientNetB0, 64, pixels=True, classifier_activation=None)
application("efficientnet_v2_b0", APPS.EfficientNetV2B0, 64, pixels=True)
application("convnext_tiny", APPS.ConvNeXtTiny, 64, pixels=True, classifier_activation=None)


def floats(*shape, low=-1.7, high=1.7):
    return {"shape": list(shape), "low": low, "high": high}


def tokens(*shape, high=49.4, dtype="int32"):
    return {"shape": list(shape), "low": -0.4, "high": high, "dtype": dtype}


def functional(inputs, outputs):
    return keras.Model(inputs, outputs)


@model
def mlp():
    x = keras.Input((16,), name="x")
    h = layers.Dense(32, activation="relu")(x)
    h = layers.Dropout(0.5)(layers.BatchNormalization()(h))
    h = layers.Dense(24, activation="selu")(layers.LayerNormalization()(h))
    return functional(x, layers.Dense(4, activation="softmax")(h)), {"x": floats(3, 16)}


@model
def activations():
    x = keras.Input((12,), name="x")
    names = ("relu", "relu6", "elu", "selu", "gelu", "tanh", "sigmoid", "hard_sigmoid", "hard_silu", "silu", "softplus", "softsign", "exponential",
             "leaky_relu", "mish", "log_softmax", "softmax")
    h = layers.Dense(12)(x)
    parts = [layers.Activation(name)(h) for name in names]
    parts += [layers.PReLU()(h), layers.LeakyReLU(0.3)(h), layers.ELU(0.7)(h), keras.activations.gelu(h, approximate=True)]
    return functional(x, layers.Dense(5)(layers.Concatenate()(parts))), {"x": floats(4, 12)}


@model
def wide_and_deep():
    numbers = keras.Input((6,), name="numbers")
    city, job = keras.Input((1,), dtype="string", name="city"), keras.Input((1,), dtype="int64", name="job")
    cities = layers.StringLookup(vocabulary=["Beijing", "Shanghai", "Shenzhen", "Chengdu"])(city)
    wide = layers.CategoryEncoding(5, output_mode="one_hot")(cities)
    deep = [layers.Flatten()(layers.Embedding(5, 4)(cities)), layers.Flatten()(layers.Embedding(9, 4)(layers.IntegerLookup(vocabulary=list(range(3, 11)))(job)))]
    scaled = layers.Normalization(mean=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], variance=[1.0, 2.0, 0.5, 1.5, 1.0, 3.0])(numbers)
    bins = layers.CategoryEncoding(4, output_mode="multi_hot")(layers.Discretization([-1.0, 0.0, 1.0])(numbers))
    h = layers.Dense(16, activation="relu")(layers.Concatenate()([*deep, scaled, bins]))
    out = layers.Dense(1, activation="sigmoid")(layers.Concatenate()([wide, h]))
    return functional({"numbers": numbers, "city": city, "job": job}, out), {
        "numbers": floats(5, 6), "city": {"shape": [5, 1], "words": ["Beijing", "Shenzhen", "nowhere", "Chengdu"]}, "job": tokens(5, 1, high=12, dtype="int64")}


SENTENCES = ["The food was GREAT!", "bad, bad service; never again", "", "Great place - the people are nice.", "I waited an hour for cold food (twice)"]
WORDS = ["the", "food", "was", "great", "bad", "service", "never", "people", "nice", "hour", "cold"]


@model
def text_classifier():
    x = keras.Input((1,), dtype="string", name="x")
    h = layers.TextVectorization(vocabulary=WORDS, output_sequence_length=6)(x)
    h = layers.Conv1D(8, 3, padding="same", activation="relu")(layers.Embedding(13, 6)(h))
    return functional(x, layers.Dense(2, activation="softmax")(layers.GlobalMaxPooling1D()(h))), {"x": {"shape": [6, 1], "words": SENTENCES}}


@model
def bag_of_words():
    x = keras.Input((1,), dtype="string", name="x")
    h = layers.TextVectorization(vocabulary=WORDS, output_mode="multi_hot")(x)
    return functional(x, layers.Dense(3)(h)), {"x": {"shape": [5, 1], "words": SENTENCES}}


@model
def lstm():
    x = keras.Input((None, 7), name="x")
    h = layers.LSTM(12, return_sequences=True)(x)
    return functional(x, layers.Dense(3)(layers.LSTM(8)(h))), {"x": floats(2, 9, 7)}


@model
def gru_bidirectional():
    x = keras.Input((10,), dtype="int32", name="x")
    h = layers.Embedding(50, 8, mask_zero=True)(x)
    h = layers.Bidirectional(layers.GRU(6, return_sequences=True))(h)
    return functional(x, layers.Dense(3)(layers.Bidirectional(layers.LSTM(5))(h))), {"x": tokens(3, 10)}


@model
def rnn_unrolled():
    x = keras.Input((5, 4), name="x")
    h = layers.LSTM(6, unroll=True, return_sequences=True)(x)
    h = layers.GRU(6, unroll=True, return_sequences=True, reset_after=False)(h)
    return functional(x, layers.Dense(2)(layers.SimpleRNN(5, unroll=True)(h))), {"x": floats(2, 5, 4)}


@model
def rnn_with_states():
    x, state = keras.Input((None, 4), name="x"), keras.Input((6,), name="state")
    whole, last = layers.GRU(6, return_sequences=True, return_state=True, go_backwards=True)(x, initial_state=state)
    return functional({"x": x, "state": state}, {"whole": whole, "last": last}), {"x": floats(2, 7, 4), "state": floats(2, 6)}


@model
def tcn():
    x = keras.Input((24, 6), name="x")
    h = x
    for rate in (1, 2, 4):
        more = layers.Conv1D(8, 3, padding="causal", dilation_rate=rate, activation="relu")(h)
        more = layers.SeparableConv1D(8, 3, padding="same")(layers.BatchNormalization()(more))
        h = layers.Add()([layers.Conv1D(8, 1)(h), more])
    h = layers.MaxPooling1D(2)(h)
    return functional(x, layers.Dense(3)(layers.GlobalMaxPooling1D()(layers.AveragePooling1D(2)(h)))), {"x": floats(2, 24, 6)}


def attention_block(h, heads, width, mask=None, causal=False, activation="gelu"):
    h = layers.LayerNormalization(epsilon=1e-6)(h + layers.MultiHeadAttention(heads, width // heads)(h, h, attention_mask=mask, use_causal_mask=causal))
    return layers.LayerNormalization(epsilon=1e-6)(h + layers.Dense(width)(layers.Dense(2 * width, activation=activation)(h)))


@model
def bert():
    ids, kinds, mask = (keras.Input((None,), dtype="int32", name=name) for name in ("input_ids", "token_type_ids", "attention_mask"))
    places = layers.Embedding(16, 24)(ops.cumsum(ops.ones_like(ids), axis=1) - 1)
    h = layers.LayerNormalization(epsilon=1e-12)(layers.Embedding(50, 24)(ids) + layers.Embedding(2, 24)(kinds) + places)
    seen = ops.cast(mask, "bool")[:, None, :]
    for _ in range(2):
        h = attention_block(h, 4, 24, seen)
    pooled = layers.Dense(24, activation="tanh")(h[:, 0])
    return functional({"input_ids": ids, "token_type_ids": kinds, "attention_mask": mask}, {"logits": layers.Dense(3)(pooled), "hidden": h}), {
        "input_ids": tokens(2, 9), "token_type_ids": tokens(2, 9, high=1.4), "attention_mask": tokens(2, 9, high=1.4)}


@model
def gpt():
    x = keras.Input((None,), dtype="int32", name="x")
    h = layers.Embedding(50, 16)(x)
    for _ in range(2):
        h = attention_block(h, 2, 16, causal=True, activation=lambda y: keras.activations.gelu(y, approximate=True))
    return functional(x, layers.Dense(50)(h)), {"x": tokens(2, 8)}


@model
def vision_transformer():
    x = keras.Input((32, 32, 3), name="x")
    h = layers.Reshape((16, 24))(layers.Conv2D(24, 8, strides=8)(x))
    h = h + layers.Embedding(16, 24)(ops.arange(16))
    for _ in range(2):
        h = attention_block(h, 3, 24)
    return functional(x, layers.Dense(5)(layers.GlobalAveragePooling1D()(h))), {"x": floats(2, 32, 32, 3)}


@model
def translation():
    source, target = keras.Input((None,), dtype="int32", name="source"), keras.Input((None,), dtype="int32", name="target")
    memory = attention_block(layers.Embedding(40, 16)(source), 2, 16)
    h = layers.Embedding(40, 16)(target)
    h = layers.LayerNormalization()(h + layers.MultiHeadAttention(2, 8)(h, h, use_causal_mask=True))
    h = layers.LayerNormalization()(h + layers.MultiHeadAttention(2, 8)(h, memory))
    return functional({"source": source, "target": target}, layers.Dense(40)(h)), {"source": tokens(2, 7, high=39.4), "target": tokens(2, 5, high=39.4)}


@model
def old_attention():
    x, y = keras.Input((6, 8), name="x"), keras.Input((4, 8), name="y")
    both = layers.Concatenate()([layers.Attention(use_scale=True)([y, x]), layers.AdditiveAttention()([y, x])])
    return functional({"x": x, "y": y}, layers.Dense(3)(both)), {"x": floats(2, 6, 8), "y": floats(2, 4, 8)}


@model
def unet():
    x = keras.Input((32, 32, 3), name="x")
    a = layers.Conv2D(8, 3, padding="same", activation="relu")(x)
    b = layers.Conv2D(12, 3, padding="same", activation="relu")(layers.MaxPooling2D()(a))
    c = layers.Conv2D(16, 3, padding="same", activation="relu")(layers.AveragePooling2D(3, 2, padding="same")(b))
    u = layers.Concatenate()([layers.Conv2DTranspose(12, 2, strides=2)(c), b])
    u = layers.Conv2DTranspose(8, 3, strides=2, padding="same")(layers.BatchNormalization()(u))
    u = layers.Concatenate()([u, layers.UpSampling2D(2, interpolation="bilinear")(b), layers.UpSampling2D(4)(c), a])
    return functional(x, layers.Conv2D(2, 1, activation="softmax")(u)), {"x": floats(1, 32, 32, 3)}


@model
def segmentation():
    x = keras.Input((33, 33, 3), name="x")
    h = layers.SeparableConv2D(8, 3, strides=2, padding="same", activation="relu")(x)
    parts = [layers.Conv2D(6, 3, dilation_rate=rate, padding="same")(h) for rate in (1, 2, 4)]
    pooled = layers.Conv2D(6, 1)(layers.GlobalAveragePooling2D(keepdims=True)(h))
    parts.append(layers.UpSampling2D(17, interpolation="bilinear")(pooled))
    h = layers.Conv2D(4, 1)(layers.Concatenate()(parts))
    return functional(x, layers.Resizing(33, 33)(h)), {"x": floats(1, 33, 33, 3)}


@model
def group_norm():
    x = keras.Input((16, 16, 4), name="x")
    h = layers.GroupNormalization(4)(layers.Conv2D(8, 3, padding="same")(x))
    h = layers.Activation("silu")(layers.UnitNormalization()(h))
    h = layers.Cropping2D(((1, 2), (2, 1)))(layers.ZeroPadding2D(((2, 0), (1, 1)))(h))
    h = layers.DepthwiseConv2D(3, depth_multiplier=2, strides=2, padding="same")(h)
    return functional(x, layers.Dense(3)(layers.Flatten()(layers.GlobalMaxPooling2D(keepdims=True)(h)))), {"x": floats(2, 16, 16, 4)}


@model
def grouped_convolutions():
    x = keras.Input((16, 16, 8), name="x")
    h = layers.Conv2D(16, 3, groups=4, padding="same", use_bias=False)(x)
    h = layers.Activation("relu")(layers.BatchNormalization(scale=False)(h))
    squeezed = layers.Dense(16, activation="sigmoid")(layers.Dense(4, activation="relu")(layers.GlobalAveragePooling2D()(h)))
    h = layers.Multiply()([h, layers.Reshape((1, 1, 16))(squeezed)])
    h = layers.Add()([layers.Conv2D(16, 1, strides=2)(x), layers.Conv2D(16, 3, strides=2, padding="same", groups=16)(h)])
    return functional(x, layers.Dense(5)(layers.GlobalAveragePooling2D()(layers.ReLU(max_value=4.0, negative_slope=0.1)(h)))), {"x": floats(2, 16, 16, 8)}


@model
def small_cnn():
    x = keras.Input((16, 16, 3), name="x")
    h = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same", use_bias=False)(x)))
    h = layers.Conv2D(12, 3, padding="same", activation="relu")(layers.MaxPooling2D()(h))
    return functional(x, layers.Dense(5)(layers.GlobalAveragePooling2D()(h))), {"x": floats(2, 16, 16, 3)}


@model
def video():
    x = keras.Input((6, 12, 12, 2), name="x")
    h = layers.Conv3D(6, 3, padding="same", activation="relu")(x)
    h = layers.Conv3D(8, (1, 3, 3), strides=(1, 2, 2))(layers.BatchNormalization()(layers.MaxPooling3D((2, 2, 2))(h)))
    return functional(x, layers.Dense(3)(layers.GlobalAveragePooling3D()(layers.AveragePooling3D((3, 1, 1))(h)))), {"x": floats(2, 6, 12, 12, 2)}


@model
def conv_lstm():
    x = keras.Input((4, 8, 8, 2), name="x")
    h = layers.ConvLSTM2D(3, 3, padding="same", return_sequences=True)(x)
    h = layers.TimeDistributed(layers.Conv2D(2, 3))(h)
    return functional(x, layers.Dense(2)(layers.Flatten()(h))), {"x": floats(2, 4, 8, 8, 2)}


@model
def two_towers():
    user, item = keras.Input((1,), dtype="int64", name="user"), keras.Input((1,), dtype="int64", name="item")
    history = keras.Input((5,), dtype="int64", name="history")
    items = layers.Embedding(60, 8)
    u = layers.Concatenate()([layers.Flatten()(layers.Embedding(50, 8)(user)), layers.GlobalAveragePooling1D()(items(history))])
    score = layers.Dot(1, normalize=True)([layers.Dense(8)(u), layers.Dense(8)(layers.Flatten()(items(item)))])
    return functional({"user": user, "item": item, "history": history}, score * 3.0), {
        "user": tokens(6, 1, dtype="int64"), "item": tokens(6, 1, high=59.4, dtype="int64"), "history": tokens(6, 5, high=59.4, dtype="int64")}


@model
def autoencoder():
    x = keras.Input((28, 28, 1), name="x")
    h = layers.Dense(6)(layers.Flatten()(layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(x)))
    y = layers.Reshape((7, 7, 6))(layers.Dense(7 * 7 * 6, activation="relu")(h))
    for width in (8, 4):
        y = layers.Conv2DTranspose(width, 3, strides=2, padding="same", activation="relu")(y)
    return functional(x, layers.Conv2D(1, 3, padding="same", activation="sigmoid")(y)), {"x": floats(2, 28, 28, 1)}


@model
def several_outputs():
    x = keras.Input((20,), name="x")
    h = layers.Dense(16, activation="relu")(x)
    outputs = {"age": layers.Dense(1)(h), "kind": layers.Dense(4, activation="softmax")(h), "top": ops.top_k(layers.Dense(6)(h), 3)[0]}
    return functional(x, outputs), {"x": floats(3, 20)}


@model
def image_pipeline():
    x = keras.Input((24, 20, 3), dtype="uint8", name="x")
    h = layers.Resizing(16, 16)(layers.Rescaling(1 / 127.5, offset=-1)(x))
    h = layers.CenterCrop(12, 12)(h)
    h = layers.Conv2D(8, 3, activation="relu", data_format="channels_last")(h)
    return functional(x, layers.Dense(4)(layers.GlobalAveragePooling2D()(h))), {"x": {"shape": [2, 24, 20, 3], "low": 0, "high": 255, "dtype": "uint8"}}


@model
def mixer():
    x = keras.Input((16, 12), name="x")
    h = x
    for _ in range(2):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(h))
        h = h + layers.Permute((2, 1))(layers.Dense(16)(layers.Dense(8, activation="gelu")(y)))
        h = h + layers.Dense(12)(layers.Dense(24, activation="gelu")(layers.RMSNormalization()(h)))
    return functional(x, layers.Dense(3)(ops.mean(h, axis=1))), {"x": floats(2, 16, 12)}


class Module(tf.Module):
    """A module whose only signature is a function."""

    def __init__(self, call, signature, **weights):
        super().__init__()
        self.weights = [tf.Variable(value, name=name) for name, value in weights.items()]
        self.call = tf.function(lambda **inputs: call(self.weights, **inputs), input_signature=None)
        self.concrete = self.call.get_concrete_function(**{key: tf.TensorSpec(shape, dtype, name=key) for key, (shape, dtype) in signature.items()})


def weight(*shape):
    return tf.random.uniform(shape, -0.5, 0.5, seed=1)


@model
def branches():
    def call(weights, x):
        w, v = weights
        h = tf.cond(tf.reduce_mean(x) > 0, lambda: tf.matmul(x, w), lambda: tf.nn.relu(tf.matmul(x, v)))
        return {"y": tf.concat([h, tf.where(h > 0.1, h, tf.zeros_like(h))], axis=-1)}

    return Module(call, {"x": ([None, 6], tf.float32)}, w=weight(6, 5), v=weight(6, 5)), {"x": floats(3, 6)}


@model
def loops():
    def call(weights, x, steps):
        (w,) = weights
        _, y = tf.while_loop(lambda i, y: i < steps, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w)) + x), [tf.constant(0), x])
        _, z = tf.while_loop(lambda i, z: tf.reduce_sum(z * z) > 1.0, lambda i, z: (i + 1, z * 0.7), [tf.constant(0), y])
        return {"y": y, "z": z}

    return Module(call, {"x": ([None, 4], tf.float32), "steps": ([], tf.int32)}, w=weight(4, 4)), {
        "x": floats(2, 4), "steps": {"shape": [], "low": 4, "high": 4, "dtype": "int32"}}


@model
def detection():
    def call(weights, image):
        (w,) = weights
        features = tf.nn.relu(tf.nn.conv2d(image, w, 4, "SAME"))  # 8 x 8
        cells = tf.reshape(features, [64, 5])
        rows, columns = tf.meshgrid(tf.range(8.0), tf.range(8.0), indexing="ij")
        centres = tf.stack([tf.reshape(rows, [-1]), tf.reshape(columns, [-1])], -1) + cells[:, :2]
        boxes = tf.concat([centres - 1 - cells[:, 2:4], centres + 1 + cells[:, 2:4]], -1)
        chosen, scores, count = tf.raw_ops.NonMaxSuppressionV5(
            boxes=boxes, scores=tf.sigmoid(cells[:, 4]), max_output_size=10, iou_threshold=0.3, score_threshold=0.1, soft_nms_sigma=0.0, pad_to_max_output_size=True)
        return {"boxes": tf.gather(boxes, chosen), "scores": scores, "count": count}

    return Module(call, {"image": ([1, 32, 32, 3], tf.float32)}, w=weight(5, 5, 3, 5)), {"image": floats(1, 32, 32, 3)}


@model
def detections():
    """Boxes of all classes with one suppression, in batches: shared by the classes, and one set for each."""
    def call(weights, image):
        (w,) = weights
        cells = tf.reshape(tf.nn.conv2d(image, w, 8, "SAME"), [-1, 16, 15])
        centres = tf.constant([[i // 4, i % 4] for i in range(16)], tf.float32)
        corners = tf.concat([centres - 0.8 - 0.4 * tf.sigmoid(cells[:, :, :2]), centres + 0.8 + 0.4 * tf.sigmoid(cells[:, :, 2:4])], -1) / 4
        shifted = tf.stack([corners + 0.02 * i for i in range(3)], 2)
        scores = tf.sigmoid(cells[:, :, 4:7])
        shared = tf.image.combined_non_max_suppression(corners[:, :, None], scores, 4, 8, iou_threshold=0.3, score_threshold=0.4)
        own = tf.image.combined_non_max_suppression(shifted, scores, 3, 20, 0.2, 0.5, pad_per_class=True, clip_boxes=False)
        return {"boxes": shared[0], "scores": shared[1], "classes": shared[2], "count": shared[3], "own": tf.concat([own[0], own[1][..., None], own[2][..., None]], -1)}

    return Module(call, {"image": ([None, 32, 32, 3], tf.float32)}, w=weight(4, 4, 3, 15)), {"image": floats(2, 32, 32, 3)}


@model
def movements():
    def call(weights, x):
        (w,) = weights
        a, b = tf.unstack(x, axis=1)
        y = tf.transpose(tf.gather(tf.pad(x, [[0, 0], [0, 0], [1, 1], [0, 0]], "REFLECT"), [2, 0, 1], axis=2), [0, 2, 1, 3])
        parts = tf.split(x, [1, 2, 1], axis=2)
        blocks = tf.nn.depth_to_space(tf.nn.space_to_depth(x[:, :, :2], 2), 2)
        batches = tf.batch_to_space(tf.space_to_batch(x, [1, 2], [[0, 0], [0, 0]]), [1, 2], [[0, 0], [0, 0]])
        sums = tf.cumsum(x, axis=2, reverse=True) + tf.math.cumsum(x, axis=1, exclusive=True)
        hot = tf.one_hot(tf.argmax(x, axis=-1, output_type=tf.int32), 4, on_value=2.0, off_value=-1.0)
        picked = tf.gather_nd(x, [[0, 1], [1, 0]], batch_dims=0)
        return {"y": tf.matmul(y, w), "z": a[:, ::-1, 1:3] - b[:, 1:, tf.newaxis, -1][:, :1], "parts": tf.concat([parts[2], parts[0]], 2), "blocks": blocks,
                "batches": batches, "sums": sums, "hot": hot, "picked": tf.tile(picked, [1, 2, 1]), "band": tf.linalg.band_part(x, 1, 0)}

    return Module(call, {"x": ([2, 2, 4, 4], tf.float32)}, w=weight(4, 3)), {"x": floats(2, 2, 4, 4)}


@model
def arithmetic():
    def call(weights, x, i):
        (w,) = weights
        y = tf.math.floordiv(x, w) + tf.math.floormod(x, w) + tf.math.divide_no_nan(x, tf.round(x))
        y += tf.math.log1p(tf.abs(x)) - tf.math.expm1(-tf.abs(x)) + tf.math.erfc(x) + tf.math.rsqrt(1.0 + x * x) + tf.sign(x) * tf.math.atan(x)
        y += tf.clip_by_value(x, -0.5, 0.7) + tf.math.squared_difference(x, w) + tf.maximum(x, w) - tf.add_n([x, x, x * 0.5])
        z = tf.math.floordiv(i, 3) * 7 + tf.math.floormod(i, 3) + tf.bitwise.bitwise_and(i, 5)
        facts = tf.stack([tf.reduce_any(x > 1, 1), tf.reduce_all(x < 1, 1), tf.math.is_finite(x[:, 0])], 1)
        return {"y": y, "z": z, "facts": facts, "norm": tf.linalg.norm(x, axis=1), "mean": tf.math.reduce_std(x, axis=1), "log": tf.math.reduce_logsumexp(x, axis=1)}

    return Module(call, {"x": ([None, 5], tf.float32), "i": ([None], tf.int32)}, w=weight(5)), {
        "x": floats(4, 5), "i": {"shape": [4], "low": -9, "high": 9, "dtype": "int32"}}


@model
def tensorflow_1():
    def save(path):
        v1 = tf.compat.v1
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None, 12, 12, 3], name="x")
            w = v1.get_variable("w", initializer=weight(3, 3, 3, 6), use_resource=False)
            scale, mean = (v1.get_variable(name, initializer=weight(6), use_resource=True) for name in ("scale", "mean"))
            h = tf.nn.conv2d(x, w, 2, "SAME")
            h, _, _ = v1.nn.fused_batch_norm(h, scale, mean, mean=mean, variance=tf.abs(scale) + 0.1, is_training=False)
            h = tf.nn.max_pool2d(tf.nn.relu6(h), 2, 2, "VALID")
            y = tf.nn.softmax(tf.reshape(h, [-1, 3 * 3 * 6]) @ v1.get_variable("v", initializer=weight(54, 4), use_resource=False))
            session.run(v1.global_variables_initializer())
            v1.saved_model.simple_save(session, path, {"x": x}, {"y": y})

    return save, {"x": floats(2, 12, 12, 3)}


PEOPLE = [
    {"age": [23.5], "city": ["Beijing"], "job": ["nurse", "cook"], "ids": [3, 1, 1], "weights": [0.5, 2.0, 1.0], "vector": [1.0, -0.5, 0.25], "unused": [7]},
    {"age": [61.0], "job": [], "city": ["Xi'an"], "ids": [], "vector": [0.0, 0.0, 1.5]},
    {"city": ["Chengdu"], "ids": [9], "weights": [-1.0], "job": ["a job with a name of more than sixty-four bytes, as they are hashed in another way"]},
    {"age": [33.0], "ids": [0, 5], "weights": [1.0, 0.25], "job": ["engineer of bridges", "a"], "city": ["Shanghai"]},
]


@model
def examples():
    """As TFX exports a Keras model: dense, sparse and ragged features of serialized examples."""
    def call(weights, examples):
        w, v, table = weights
        one = tf.io.FixedLenFeature
        features = tf.io.parse_example(examples, {
            "age": one([], tf.float32, default_value=40.0),
            "city": one([1], tf.string),
            "vector": one([3, 1], tf.float32, default_value=[[0.5], [0.25], [-1.0]]),
            "ids": tf.io.VarLenFeature(tf.int64),
            "weights": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True, default_value=9.0),
            "job": tf.io.RaggedFeature(tf.string)})
        ids = tf.sparse.to_dense(features["ids"], default_value=-1)
        bags = tf.reduce_sum(tf.where(ids[:, :, None] < 0, 0.0, tf.gather(table, tf.maximum(ids, 0))), 1)
        h = tf.concat([features["age"][:, None] / 50.0, tf.squeeze(features["vector"], 2), bags], 1)
        buckets = tf.strings.to_hash_bucket_fast(features["city"], 5)
        jobs = features["job"].to_tensor(default_value="none")
        return {"y": tf.tanh(h @ w) + tf.gather(v, buckets[:, 0]), "weights": features["weights"], "city": features["city"], "jobs": jobs,
                "shape": tf.identity(features["ids"].dense_shape)}

    return Module(call, {"examples": ([None], tf.string)}, w=weight(8, 3), v=weight(5, 3), table=weight(10, 4)), {
        "examples": {"shape": [4], "examples": PEOPLE}}


@model
def dense_examples():
    """Only dense features: as many rows as messages."""
    def call(weights, examples):
        w, v = weights
        one = tf.io.FixedLenFeature
        features = tf.io.parse_example(examples, {
            "age": one([1], tf.float32, default_value=40.0), "city": one([], tf.string), "vector": one([3], tf.float32, default_value=[0.5, 0.25, -1.0])})
        buckets = tf.strings.to_hash_bucket_fast(features["city"], 5)
        return {"scores": tf.nn.softmax(tf.concat([features["age"] / 50.0, features["vector"]], 1) @ w + tf.gather(v, buckets))}

    return Module(call, {"examples": ([None], tf.string)}, w=4 * weight(4, 3), v=weight(5, 3)), {"examples": {"shape": [4], "examples": PEOPLE}}


@model
def single_example():
    def call(weights, example):
        features = tf.io.parse_single_example(example, {
            "vector": tf.io.FixedLenFeature([3], tf.float32), "ids": tf.io.VarLenFeature(tf.int64), "job": tf.io.VarLenFeature(tf.string)})
        return {"y": features["vector"] * weights[0], "ids": features["ids"].values + features["ids"].indices[:, 0], "job": features["job"].values}

    return Module(call, {"example": ([], tf.string)}, w=weight(3)), {"example": {"shape": [], "examples": PEOPLE[:1]}}


@model
def feature_columns():
    """As tf.estimator exports a DNNLinearCombinedClassifier: feature columns, and signatures for classify, regress and predict."""
    def save(path):
        v1, columns = tf.compat.v1, tf.feature_column
        with tf.Graph().as_default(), v1.Session() as session, v1.variable_scope("", initializer=v1.random_uniform_initializer(-0.7, 0.7, seed=1)):
            serialized = v1.placeholder(tf.string, [None], name="input_example_tensor")
            age, vector = columns.numeric_column("age", default_value=40.0, normalizer_fn=lambda x: x / 50.0), columns.numeric_column("vector", shape=(3,), default_value=0.5)
            city = columns.categorical_column_with_vocabulary_list("city", ["Beijing", "Shanghai", "Chengdu"], num_oov_buckets=1)
            job = columns.categorical_column_with_hash_bucket("job", 20)
            ids = columns.weighted_categorical_column(columns.categorical_column_with_identity("ids", 10), "weights")
            ages = columns.bucketized_column(columns.numeric_column("age", default_value=40.0), [18, 30, 50])
            deep = [age, vector, columns.embedding_column(job, 4), columns.embedding_column(city, 3, combiner="sum"), columns.indicator_column(city)]
            wide = [ages, city, job, columns.crossed_column(["city", "job"], 30), columns.crossed_column([ages, "city"], 15), ids]
            features = v1.io.parse_example(serialized, columns.make_parse_example_spec(deep + wide))
            deep = v1.feature_column.input_layer(features, deep)
            hidden = tf.nn.relu(deep @ v1.get_variable("hidden", [deep.shape[1], 6]))
            linear = v1.feature_column.linear_model(features, wide, units=1)
            logits = hidden @ v1.get_variable("logits", [6, 1]) + linear
            logistic = tf.nn.sigmoid(logits)
            scores = tf.concat([1.0 - logistic, logistic], 1)
            names = tf.tile(tf.as_string(tf.range(2))[None], [tf.shape(scores)[0], 1])
            signatures = v1.saved_model.signature_def_utils
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            for variable in v1.trainable_variables():
                if "linear_model" in variable.name:  # which begin as zeros
                    session.run(variable.assign(v1.random_uniform(variable.shape, -0.7, 0.7, seed=2)))
            builder = v1.saved_model.Builder(path)
            builder.add_meta_graph_and_variables(session, ["serve"], {
                "serving_default": signatures.classification_signature_def(serialized, names, scores),
                "regression": signatures.regression_signature_def(serialized, logistic),
                "predict": signatures.predict_signature_def({"examples": serialized}, {"logits": logits, "logistic": logistic})},
                main_op=v1.tables_initializer())
            builder.save()

    return save, {"inputs": {"shape": [4], "examples": PEOPLE}}


@model
def several_signatures():
    """A graph with another name, and another graph of the same weights."""
    def save(path):
        module = tf.Module()
        module.w, module.v = tf.Variable(weight(6, 8)), tf.Variable(weight(8, 3))
        one = lambda rank: tf.TensorSpec([None] * (rank - 1) + [6], tf.float32, name="x")
        embed = tf.function(lambda x: {"embedding": tf.tanh(x @ module.w)}, input_signature=[one(2)])
        scores = tf.function(lambda x: {"scores": tf.nn.softmax(tf.tanh(x @ module.w) @ module.v)}, input_signature=[one(2)])
        reads = tf.function(lambda path: {"y": tf.io.read_file(path)}, input_signature=[tf.TensorSpec([], tf.string, name="path")])
        tf.saved_model.save(module, path, signatures={"serving_default": scores, "again": scores, "embed": embed, "reads_files": reads})

    return save, {"x": floats(4, 6)}
