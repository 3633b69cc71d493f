"""The models: those of TensorFlow's zoo that are layers alone, and some that are about the file: Sequential, models in models, shared layers."""

import keras
import tensorflow_zoo
from keras import layers, ops
from tensorflow_zoo import floats, functional, tokens

LAYERS = """vgg16 resnet50 resnet50v2 inception_v3 inception_resnet_v2 xception mobilenet mobilenet_v2 mobilenet_v3_small mobilenet_v3_large densenet121
nasnet_mobile efficientnet_b0 efficientnet_v2_b0 convnext_tiny mlp activations wide_and_deep text_classifier bag_of_words lstm rnn_unrolled rnn_with_states tcn bert
vision_transformer translation old_attention unet segmentation group_norm grouped_convolutions small_cnn video two_towers autoencoder image_pipeline mixer""".split()
MODELS = {name: tensorflow_zoo.MODELS[name] for name in LAYERS}


def model(build):
    MODELS[build.__name__] = build
    return build


@model
def sequential():
    built = keras.Sequential([keras.Input((12, 10, 2), name="x"), layers.Conv2D(6, 3, strides=2, activation="relu"), layers.BatchNormalization(),
                              layers.Flatten(), layers.Dropout(0.3), layers.Dense(9, activation="gelu"), layers.Dense(4)])  # fmt: skip
    return built, {"x": floats(3, 12, 10, 2)}


@model
def sequential_built_later():
    built = keras.Sequential([layers.Dense(8, activation="relu"), layers.Dense(3)])
    built.build((None, 5))
    return built, {"*": floats(4, 5)}


@model
def nested():
    """Models in a model; one of them, and one layer, twice."""
    part = keras.Sequential([layers.Dense(8, activation="tanh"), layers.LayerNormalization()], name="part")
    a, b = keras.Input((6,), name="a"), keras.Input((6,), name="b")
    inner_input = keras.Input((8,))
    inner = functional(inner_input, [layers.Dense(8)(inner_input), layers.Dense(2)(inner_input)])
    shared = layers.Dense(8)
    first, second = inner(part(a))
    h = layers.Concatenate()([shared(first), shared(part(b)), second])
    return functional([a, b], [layers.Dense(3, name="scores")(h), layers.Dense(1, name="size")(h)]), {"a": floats(3, 6), "b": floats(3, 6)}


@model
def bidirectional():
    x = keras.Input((None, 5), name="x")
    h = layers.Bidirectional(layers.LSTM(6, return_sequences=True))(x)
    h = layers.Bidirectional(layers.GRU(4, return_sequences=True), merge_mode="sum")(h)
    h = layers.TimeDistributed(layers.Dense(7, activation="relu"))(h)
    last = layers.Bidirectional(layers.SimpleRNN(5), merge_mode="ave")(h)
    sequence, state, memory = layers.LSTM(4, return_sequences=True, return_state=True)(h)
    again = layers.LSTM(4)(sequence, initial_state=[state, memory])
    return functional(x, layers.Dense(3)(layers.Concatenate()([last, again, layers.GlobalAveragePooling1D()(sequence)]))), {"x": floats(2, 8, 5)}


@model
def masked_attention():
    x = keras.Input((7,), dtype="int32", name="x")
    h = layers.Embedding(20, 12, mask_zero=True)(x)
    h = layers.LayerNormalization()(layers.Add()([h, layers.MultiHeadAttention(3, 4)(h, h)]))
    return functional(x, layers.Dense(4)(layers.GlobalAveragePooling1D()(h))), {"x": tokens(4, 7, high=3.4)}


@model
def transposed():
    x = keras.Input((6, 5, 3), name="x")
    a = layers.Conv2DTranspose(4, 3, strides=2, padding="same", output_padding=1)(x)
    b = layers.Conv2DTranspose(4, (2, 3), strides=(3, 2))(x)
    c = layers.Conv1DTranspose(5, 4, strides=2, padding="same")(layers.Reshape((30, 3))(x))
    parts = [layers.GlobalMaxPooling2D()(a), layers.GlobalAveragePooling2D()(b), layers.GlobalMaxPooling1D()(c)]
    return functional(x, layers.Dense(3)(layers.Concatenate()(parts))), {"x": floats(2, 6, 5, 3)}


@model
def lines():
    x = keras.Input((20, 4), name="x")
    h = layers.DepthwiseConv1D(3, strides=2, depth_multiplier=2, padding="same")(x)
    h = layers.ZeroPadding1D((1, 2))(layers.Cropping1D((1, 0))(h))
    h = layers.UpSampling1D(2)(layers.AveragePooling1D(3, 2, padding="same")(h))
    h = layers.PReLU(shared_axes=[1])(layers.SpatialDropout1D(0.2)(h))
    return functional(x, layers.Dense(2)(layers.Flatten()(layers.Permute((2, 1))(h)))), {"x": floats(2, 20, 4)}


@model
def einsum_layers():
    x = keras.Input((6, 8), name="x")
    h = layers.EinsumDense("abc,cde->abde", output_shape=(None, 3, 4), bias_axes="de", activation="relu")(x)
    h = layers.EinsumDense("abde,def->abf", output_shape=(None, 5), bias_axes="f")(h)
    return functional(x, ops.max(h, axis=1)), {"x": floats(2, 6, 8)}


@model
def lookups():
    word, number = keras.Input((1,), dtype="string", name="word"), keras.Input((1,), dtype="int64", name="number")
    known = layers.StringLookup(vocabulary=["red", "green", "blue"], output_mode="one_hot")(word)
    places = layers.Embedding(6, 4)(layers.StringLookup(vocabulary=["red", "green", "blue"], mask_token="")(word))
    counted = layers.IntegerLookup(vocabulary=[3, 5, 8], output_mode="multi_hot")(number)
    h = layers.Concatenate()([known, layers.Flatten()(places), counted])
    return functional({"word": word, "number": number}, layers.Dense(3)(h)), {
        "word": {"shape": [6, 1], "words": ["red", "blue", "", "grey"]}, "number": tokens(6, 1, high=9.4, dtype="int64")}
