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


# Masks. Token 0 fills sentences up. It is drawn often enough that it also stands first, last and within sentences, where it counts as little.


@model
def masked_classifier():
    """A classifier of texts: Embedding, Bidirectional LSTM, Dense."""
    built = keras.Sequential([keras.Input((9,), dtype="int32", name="x"), layers.Embedding(20, 8, mask_zero=True), layers.SpatialDropout1D(0.2),
                              layers.Bidirectional(layers.LSTM(6, return_sequences=True)), layers.Bidirectional(layers.LSTM(5)), layers.Dropout(0.5),
                              layers.Dense(6, activation="relu"), layers.Dense(2)])  # fmt: skip
    return built, {"x": tokens(7, 9, high=1.4)}


@model
def masked_tagger():
    """An answer for each word of a sentence of any length."""
    x = keras.Input((None,), dtype="int64", name="x")
    h = layers.Embedding(30, 7, mask_zero=True)(x)
    h = layers.GRU(6, return_sequences=True, dropout=0.1, recurrent_dropout=0.1)(h)
    h = layers.GRU(5, return_sequences=True, go_backwards=True, reset_after=False)(layers.LayerNormalization()(h))
    return functional(x, layers.TimeDistributed(layers.Dense(4))(h)), {"x": tokens(6, 8, high=1.6, dtype="int64")}


@model
def masked_reviews():
    """As the examples of Keras classify reviews of films. Some rows are empty."""
    x = keras.Input((6,), dtype="int32", name="x")
    h = layers.Embedding(100, 12, mask_zero=True)(x)
    return functional(x, layers.Dense(1)(layers.LSTM(8, dropout=0.2)(h))), {"x": tokens(24, 6, high=0.8)}


@model
def masked_steps():
    """Each way to read a masked sequence: its answer at every step, the last of them, the state; forwards, backwards, with zeros; and a mask that is an input."""
    x, given = keras.Input((None, 1), dtype="int32", name="x"), keras.Input((None,), dtype="int32", name="given")
    scaled = layers.Rescaling(0.5)(x)
    h = layers.Masking(0.0)(scaled)
    outputs = {}
    for kind, layer in {"lstm": layers.LSTM, "gru": layers.GRU, "rnn": layers.SimpleRNN}.items():
        for zeros in (False, True):
            for backwards in (False, True):
                name = f"{kind}{'_zeros' * zeros}{'_back' * backwards}"
                settings = {"zero_output_for_mask": zeros, "go_backwards": backwards}
                outputs[name] = layer(3, return_sequences=True, **settings)(h)
                outputs[f"{name}_last"] = layer(2, **settings)(h)
    whole, state, memory = layers.LSTM(4, return_sequences=True, return_state=True)(h)
    outputs.update(whole=whole, state=state, memory=memory)
    outputs["again"] = layers.LSTM(4, return_sequences=True)(h, initial_state=[state, memory])  # without the mask: Keras passes on that of an only tensor
    outputs["asked"] = layers.LSTM(4)(scaled, mask=given)
    outputs["asked_again"] = layers.GRU(4)(scaled, initial_state=state, mask=given)
    for mode in ("sum", "mul", "ave", "concat"):
        outputs[f"both_{mode}"] = layers.Bidirectional(layers.GRU(3, return_sequences=True), merge_mode=mode)(h)
    outputs["both_last"] = layers.Bidirectional(layers.SimpleRNN(3))(h)
    return functional({"x": x, "given": given}, outputs), {"x": tokens(8, 7, 1, high=2.4), "given": tokens(8, 7, high=1.4)}


@model
def masked_joins():
    """Where masks of several tensors meet, and layers in which they end."""
    a, b = keras.Input((6,), dtype="int32", name="a"), keras.Input((6,), dtype="int32", name="b")
    p, q = (layers.Embedding(9, 6, mask_zero=True)(each) for each in (a, b))
    plain = layers.Embedding(9, 6)(b)
    last = lambda h: layers.GRU(4)(h)
    outputs = {
        "added": last(layers.Add()([p, q])), "added_plain": last(layers.Add()([p, plain])), "beside": last(layers.Concatenate()([p, q])),
        "beside_plain": last(layers.Concatenate()([p, plain])), "behind": last(layers.Concatenate(axis=1)([p, q])),
        "behind_plain": last(layers.Concatenate(axis=1)([p, plain])), "dense": last(layers.Dense(5)(layers.Dropout(0.1)(p))),
        "attended": last(layers.MultiHeadAttention(2, 3)(p, q)), "ended": last(layers.RMSNormalization()(p)),
        "ended_too": last(layers.EinsumDense("abc,cd->abd", output_shape=(None, 4))(p)), "kept": last(layers.UnitNormalization()(layers.GroupNormalization(2)(p))),
        "convolved": last(layers.Conv1D(4, 3, padding="same")(p)), "mean": layers.GlobalAveragePooling1D()(layers.Bidirectional(layers.LSTM(3, return_sequences=True))(p)),
    }  # fmt: skip
    return functional([a, b], outputs), {"a": tokens(6, 6, high=1.6), "b": tokens(6, 6, high=1.6)}


@model
def masked_translation():
    """An encoder whose states begin the decoder, and attention between them."""
    source, target = keras.Input((None,), dtype="int32", name="source"), keras.Input((None,), dtype="int32", name="target")
    encoded, state, memory = layers.LSTM(6, return_sequences=True, return_state=True)(layers.Embedding(12, 5, mask_zero=True)(source))
    decoded = layers.LSTM(6, return_sequences=True)(layers.Embedding(14, 5, mask_zero=True)(target), initial_state=[state, memory])
    read = layers.Attention()([decoded, encoded])
    h = layers.GRU(5, return_sequences=True)(layers.Concatenate()([decoded, read]))
    return functional([source, target], layers.Dense(8)(h)), {"source": tokens(5, 7, high=2.4), "target": tokens(5, 6, high=2.4)}


def under(policy):
    """The model is built under this policy: what Keras computes in, and keeps weights in."""
    def build_under(build):
        def built():
            keras.config.set_dtype_policy(policy)
            try:
                return build()
            finally:
                keras.config.set_dtype_policy("float32")

        built.__name__ = build.__name__
        return model(built)

    return build_under


def mixed_network():
    x = keras.Input((8, 8, 3), name="x")
    h = layers.Conv2D(8, 3, padding="same", activation="relu")(layers.Rescaling(1 / 255)(x))
    h = layers.BatchNormalization()(layers.Add()([h, layers.SeparableConv2D(8, 3, padding="same")(h)]))
    h = ops.relu(layers.Reshape((16, 8))(layers.MaxPooling2D()(h)))
    h = layers.LayerNormalization()(layers.Add()([h, layers.MultiHeadAttention(2, 4)(h, h)]))
    h = layers.Bidirectional(layers.LSTM(6))(layers.Conv1D(8, 3, padding="causal")(h))
    return functional(x, {"logits": layers.Dense(4)(h), "shares": layers.Dense(5, activation="softmax", dtype="float32")(h), "sums": h + ops.cast(h, "float32")}), {
        "x": {"shape": [3, 8, 8, 3], "low": 0.0, "high": 255.0}}


@under("mixed_float16")
def mixed_float16():
    return mixed_network()


@under("mixed_bfloat16")
def mixed_bfloat16():
    return mixed_network()


def narrow_network():
    """Its weights are of 16 bits, too. They are those that Keras draws."""
    keras.utils.set_random_seed(1)
    x, spread = keras.Input((10, 6), name="x"), {"recurrent_initializer": "glorot_uniform"}  # the usual one cannot be computed in bfloat16
    h = layers.Conv1D(6, 3, activation="relu")(x)
    h = layers.GRU(5, return_sequences=True, **spread)(layers.PReLU(shared_axes=[1])(h))
    h = layers.EinsumDense("abc,cd->abd", output_shape=(None, 4), bias_axes="d")(layers.LSTM(5, return_sequences=True, **spread)(h))
    return functional(x, layers.Dense(3, kernel_initializer=keras.initializers.RandomUniform(-3, 3))(layers.GlobalAveragePooling1D()(h))), {"x": floats(4, 10, 6)}


@under("float16")
def only_float16():
    return narrow_network()


@under("bfloat16")
def only_bfloat16():
    return narrow_network()


# Words that are counted.


@model
def counted_words():
    """Texts of any length as counts of words; and the same of categories."""
    x, word = keras.Input((1,), dtype="string", name="x"), keras.Input((3,), dtype="string", name="word")
    words, colours, rare = tensorflow_zoo.WORDS, ["red", "green", "blue"], [0.5 + 0.25 * i for i in range(len(tensorflow_zoo.WORDS))]
    return functional({"x": x, "word": word}, {
        "hot": layers.TextVectorization(vocabulary=words, output_mode="multi_hot")(x),
        "count": layers.TextVectorization(vocabulary=words, output_mode="count", standardize="lower")(x),
        "padded": layers.TextVectorization(15, vocabulary=words, output_mode="count", pad_to_max_tokens=True)(x),
        "rare": layers.TextVectorization(vocabulary=words, output_mode="tf_idf", idf_weights=rare)(x),
        "rare_padded": layers.TextVectorization(15, vocabulary=words, output_mode="tf_idf", idf_weights=rare, pad_to_max_tokens=True)(x),
        "rare_colours": layers.StringLookup(vocabulary=colours, output_mode="tf_idf", idf_weights=[1.5, 2.5, 0.5])(word),
        "counted_colours": layers.StringLookup(vocabulary=colours, output_mode="count")(word),
    }), {"x": {"shape": [6, 1], "words": tensorflow_zoo.SENTENCES}, "word": {"shape": [6, 3], "words": ["red", "blue", "", "grey"]}}


@model
def adapted_words():
    """A vocabulary and weights that the layer learned from texts."""
    learned = layers.TextVectorization(output_mode="tf_idf")
    learned.adapt(tensorflow_zoo.SENTENCES)
    x = keras.Input((1,), dtype="string", name="x")
    return functional(x, layers.Dense(3)(learned(x))), {"x": {"shape": [7, 1], "words": tensorflow_zoo.SENTENCES}}
