"""com.microsoft's operators for transformers, as ONNX Runtime's optimiser and model builders write them; several to a model. Those that
ONNX Runtime computes on a CPU: BiasSoftmax, BiasAdd, BiasDropout, BiasSplitGelu, GroupNorm and
packed operands of MultiHeadAttention are among what it does not."""

import numpy as np
import onnx.parser
from onnx import numpy_helper

from .common import IR_VERSION, normal, serialize, write as write_fixture, write_data_sets

WIDTH, HEADS, LENGTH = 64, 4, 6
HEAD = WIDTH // HEADS


def build(text, weights):
    model = onnx.parser.parse_model(f'<ir_version: {IR_VERSION}, opset_import: ["" : 18, "com.microsoft" : 1]>\n{text}')
    for name, value in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return model


def write(out):
    rng = np.random.default_rng(20)
    write_activations(out / "microsoft_activations", rng)
    write_norms(out / "microsoft_norms", rng)
    write_products(out / "microsoft_products", rng)
    write_attention(out / "microsoft_attention", rng)
    write_group_query(out / "microsoft_group_query", rng)


def write_activations(folder, rng):
    text = f"""
    activations (float[batch, {WIDTH}] x)
        => (float[batch, {WIDTH}] gelu, float[batch, {WIDTH}] fast, float[batch, {WIDTH}] fast_biased, float[batch, {WIDTH}] biased,
            float[batch, {WIDTH}] quick) {{
      gelu = com.microsoft.Gelu(x)
      fast = com.microsoft.FastGelu(x)
      fast_biased = com.microsoft.FastGelu(x, bias)
      biased = com.microsoft.BiasGelu(x, bias)
      quick = com.microsoft.QuickGelu<alpha: float = 1.5>(x)
    }}"""
    data_sets = [{"x": normal(rng, n, WIDTH, scale=2)} for n in (3, 1)]
    write_fixture(folder, build(text, {"bias": normal(rng, WIDTH)}), data_sets)


def write_norms(folder, rng):
    text = f"""
    norms (int64[batch, length] ids64, int64[batch, length] segments64, int64[batch, length] mask64)
        => (float[batch, length, {WIDTH}] embedded, float[batch, length, {WIDTH}] skipped, float[batch, length, {WIDTH}] sum,
            float[batch, length, {WIDTH}] rms, float[batch, length, {WIDTH}] plain, int32[batch] counts) {{
      ids = Cast<to: int = 6>(ids64)
      segments = Cast<to: int = 6>(segments64)
      mask = Cast<to: int = 6>(mask64)
      embedded, counts = com.microsoft.EmbedLayerNormalization<epsilon: float = 1e-05>
          (ids, segments, words, places, kinds, gamma, beta, mask)
      skipped, , , sum = com.microsoft.SkipLayerNormalization<epsilon: float = 1e-05>(embedded, embedded, gamma, beta, bias)
      rms = com.microsoft.SkipSimplifiedLayerNormalization<epsilon: float = 1e-05>(skipped, embedded, gamma)
      plain = SimplifiedLayerNormalization<axis: int = -1, epsilon: float = 1e-05>(rms, gamma)
    }}"""
    weights = {"words": normal(rng, 20, WIDTH), "places": normal(rng, 16, WIDTH), "kinds": normal(rng, 2, WIDTH), "gamma": normal(rng, WIDTH),
               "beta": normal(rng, WIDTH), "bias": normal(rng, WIDTH)}
    data_sets = []
    for batch, length in ((2, 5), (1, 1)):
        mask = np.ones((batch, length), np.int64)
        mask[-1, length // 2 + 1:] = 0
        data_sets.append({"ids64": rng.integers(0, 20, (batch, length)), "segments64": rng.integers(0, 2, (batch, length)), "mask64": mask})
    folder.mkdir(parents=True, exist_ok=True)  # SimplifiedLayerNormalization is in no standard: the checker would refuse it
    (folder / "model.onnx").write_bytes(serialize(build(text, weights)))
    write_data_sets(folder, folder / "model.onnx", data_sets)


def write_products(folder, rng):
    text = """
    products (float[batch, 5, 8] a, float[batch, 8, 5] a_turned, float[n, 8] rows, float[n, 3, 9, 9] image)
        => (float[batch, 5, 7] scaled, float[batch, 5, 7] turned, float[n, 7] gemm, float[n, 4, 9, 9] conv, float[n, 4, 9, 9] summed) {
      scaled = com.microsoft.FusedMatMul<alpha: float = 0.25>(a, w)
      turned = com.microsoft.FusedMatMul<transA: int = 1, transB: int = 1>(a_turned, w_turned)
      gemm = com.microsoft.FusedGemm<activation: string = "LeakyRelu", activation_alpha: float = 0.2, alpha: float = 0.5, transB: int = 1>
          (rows, w_turned, bias)
      conv = com.microsoft.FusedConv<activation: string = "Relu", pads: ints = [1, 1, 1, 1]>(image, filters, filter_bias)
      summed = com.microsoft.FusedConv<activation: string = "Relu", pads: ints = [1, 1, 1, 1]>(image, filters, filter_bias, conv)
    }"""
    w = normal(rng, 8, 7)
    weights = {"w": w, "w_turned": np.ascontiguousarray(w.T), "bias": normal(rng, 7), "filters": normal(rng, 4, 3, 3, 3),
               "filter_bias": normal(rng, 4)}
    data_sets = [{"a": normal(rng, n, 5, 8), "a_turned": normal(rng, n, 8, 5), "rows": normal(rng, n, 8), "image": normal(rng, n, 3, 9, 9)}
                 for n in (2, 1)]
    write_fixture(folder, build(text, weights), data_sets)


def write_attention(folder, rng):
    text = f"""
    attention (float[batch, length, {WIDTH}] x, int32[batch, length] mask, int32[batch] counts,
               float[batch, {HEADS}, past, {HEAD}] past_key, float[batch, {HEADS}, past, {HEAD}] past_value)
        => (float[batch, length, {WIDTH}] masked, float[batch, length, {WIDTH}] counted, float[batch, length, {WIDTH}] causal,
            float[batch, length, {WIDTH}] multi, float[batch, length, {WIDTH}] cached, float[batch, {HEADS}, total, {HEAD}] present_key,
            float[batch, {HEADS}, total, {HEAD}] present_value) {{
      masked = com.microsoft.Attention<num_heads: int = {HEADS}>(x, w, b, mask)
      counted = com.microsoft.Attention<num_heads: int = {HEADS}>(x, w, b, counts)
      causal = com.microsoft.Attention<num_heads: int = {HEADS}, unidirectional: int = 1, scale: float = 0.4>(x, w, b)
      multi = com.microsoft.MultiHeadAttention<num_heads: int = {HEADS}>(x, masked, causal, qkv_bias, mask)
      cached, present_key, present_value = com.microsoft.MultiHeadAttention<num_heads: int = {HEADS}>
          (x, masked, causal, qkv_bias, , , past_key, past_value)
    }}"""
    weights = {"w": normal(rng, WIDTH, 3 * WIDTH, scale=0.3), "b": normal(rng, 3 * WIDTH, scale=0.3),
               "qkv_bias": normal(rng, 3 * WIDTH, scale=0.3)}
    data_sets = []
    for batch, length, past in ((2, LENGTH, 3), (1, 1, 7)):
        mask = np.ones((batch, length), np.int32)
        mask[-1, length // 2 + 1:] = 0
        data_sets.append({"x": normal(rng, batch, length, WIDTH), "mask": mask, "counts": mask.sum(1).astype(np.int32),
                          "past_key": normal(rng, batch, HEADS, past, HEAD), "past_value": normal(rng, batch, HEADS, past, HEAD)})
    write_fixture(folder, build(text, weights), data_sets)


def write_group_query(folder, rng):
    kv = 2
    text = f"""
    group_query (float[batch, length, {WIDTH}] q, float[batch, length, {kv * HEAD}] k, float[batch, length, {kv * HEAD}] v,
                 float[batch, {kv}, past, {HEAD}] past_key, float[batch, {kv}, past, {HEAD}] past_value, int32[batch] lengths, int32 total,
                 int64[batch, length] ids)
        => (float[batch, length, {WIDTH}] y, float[batch, {kv}, all, {HEAD}] key, float[batch, {kv}, all, {HEAD}] value,
            float[batch, length, {WIDTH}] near, float[batch, length, {WIDTH}] turned) {{
      y, key, value = com.microsoft.GroupQueryAttention<num_heads: int = {HEADS}, kv_num_heads: int = {kv}, do_rotary: int = 1>
          (q, k, v, past_key, past_value, lengths, total, cosines, sines)
      near, near_key, near_value = com.microsoft.GroupQueryAttention<num_heads: int = {HEADS}, kv_num_heads: int = {kv},
          local_window_size: int = 3>(q, k, v, past_key, past_value, lengths, total)
      turned = com.microsoft.RotaryEmbedding(q, ids, cosines, sines)
    }}"""
    angles = np.arange(16)[:, None] / 10 ** np.arange(HEAD // 2)[None]
    weights = {"cosines": np.cos(angles).astype(np.float32), "sines": np.sin(angles).astype(np.float32)}
    data_sets = []
    for batch, length, past in ((1, 4, 0), (2, 1, 5), (1, 3, 2)):
        lengths = np.full(batch, past + length - 1, np.int32)
        data_sets.append({"q": normal(rng, batch, length, WIDTH), "k": normal(rng, batch, length, kv * HEAD),
                          "v": normal(rng, batch, length, kv * HEAD), "past_key": normal(rng, batch, kv, past, HEAD),
                          "past_value": normal(rng, batch, kv, past, HEAD), "lengths": lengths,
                          "total": np.array(past + length, np.int32), "ids": np.arange(past, past + length) + np.zeros((batch, 1), np.int64)})
    write_fixture(folder, build(text, weights), data_sets)
