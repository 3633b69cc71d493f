// The batchable proof: what must be proven, and what must be refused with a reason that names the node.

#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

std::string why_not(std::string_view text) {
  const Batchable proof = prove_batchable(graph_of(text));
  EXPECT_EQ(proof.yes, proof.why_not.empty());
  return proof.why_not;
}

TEST(Batchable, Mlp) {
  const Batchable proof = prove_batchable(graph_of(R"(
    x: f32[n,64]
    a = Gemm(x, w1[64,32], b1[32])
    b = Relu(a)
    c = MatMul(b, w2[32,10])
    d = Add(c, b2[10])
    y = Softmax(d)
    return y
  )"));
  EXPECT_TRUE(proof.yes) << proof.why_not;
  EXPECT_EQ(proof.symbol, "n");
}

TEST(Batchable, CnnWhateverWayItFlattens) {
  const std::string head = "x: f32[n,1,8,8]\nc = Conv(x, w[4,1,3,3], pads=[1,1,1,1])\np = MaxPool(c, kernel_shape=[2,2], strides=[2,2])\n";
  const std::string tail = "y = Gemm(r, v[64,10])\nreturn y\n";
  EXPECT_EQ(why_not(head + "r = Flatten(p)\n" + tail), "");
  EXPECT_EQ(why_not(head + "r = Reshape(p, i64{0,-1})\n" + tail), "");
  EXPECT_EQ(why_not(head + "r = Reshape(p, i64{-1,64})\n" + tail), "");
  EXPECT_EQ(
      why_not(head + "s = Shape(p)\nb = Slice(s, starts=[0], ends=[1], axes=[0])\nt = Concat(b, i64{-1}, axis=0)\nr = Reshape(p, t)\n" +
              tail),
      "");
}

TEST(Batchable, AttentionWithComputedShapes) {
  EXPECT_EQ(why_not(R"(
    ids: i64[batch,seq]
    mask: f32[batch,seq]
    s = Shape(ids)
    b = Gather(s, i64[]{0})
    t = Gather(s, i64[]{1})
    b1 = Unsqueeze(b, axes=[0])
    t1 = Unsqueeze(t, axes=[0])
    words = Gather(table[100,64], ids)
    range = Range(i64[]{0}, t, i64[]{1})
    places = Gather(positions[128,64], range)
    sliced = Slice(more_positions[128,64], i64{0}, t1, i64{0})
    x0 = Add(words, places)
    x = Add(x0, sliced)
    split = Concat(b1, t1, i64{4}, i64{16}, axis=0)
    join = Concat(b1, t1, i64{64}, axis=0)
    q = MatMul(x, wq[64,64])
    q1 = Reshape(q, split)
    q2 = Transpose(q1, perm=[0,2,1,3])
    k = MatMul(x, wk[64,64])
    k1 = Reshape(k, split)
    k2 = Transpose(k1, perm=[0,2,3,1])
    v = MatMul(x, wv[64,64])
    v1 = Reshape(v, split)
    v2 = Transpose(v1, perm=[0,2,1,3])
    scores = MatMul(q2, k2)
    m = Unsqueeze(mask, axes=[1,2])
    masked = Add(scores, m)
    p = Softmax(masked)
    o = MatMul(p, v2)
    o1 = Transpose(o, perm=[0,2,1,3])
    o2 = Reshape(o1, join)
    flat = Reshape(o2, i64{-1,64})
    out = Gemm(flat, wo[64,64], bo[64])
    back = Reshape(out, join)
    z = LayerNormalization(back, g[64], beta[64])
    first = Gather(z, i64[]{0}, axis=1)
    return z, first
  )"),
            "");
}

TEST(Batchable, SequenceFirstInside) {
  EXPECT_EQ(why_not(R"(
    x: f32[batch,seq,8]
    t = Transpose(x, perm=[1,0,2])
    m = MatMul(t, w[8,8])
    r = Reshape(m, i64{0,-1,4})
    q = Reshape(r, i64{0,-1,8})
    y = Transpose(q, perm=[1,0,2])
    return y
  )"),
            "");
}

TEST(Batchable, ConstantRowsExpandedToTheBatch) {
  EXPECT_EQ(why_not(R"(
    x: f32[n,4,8]
    s = Shape(x)
    b = Slice(s, starts=[0], ends=[1], axes=[0])
    target = Concat(b, i64{1,8}, axis=0)
    token = Expand(cls[1,1,8], target)
    y = Concat(token, x, axis=1)
    return y
  )"),
            "");
}

TEST(Batchable, UNetWithSizesTakenFromItsImages) {
  EXPECT_EQ(why_not(R"(
    x: f32[n,3,h,w]
    a = Conv(x, wa[8,3,3,3], pads=[1,1,1,1])
    b = Conv(a, wb[8,8,3,3], pads=[1,1,1,1], strides=[2,2])
    g = GroupNormalization(b, s1[8], s2[8], num_groups=2)
    i = InstanceNormalization(g, s3[8], s4[8])
    up = ConvTranspose(i, wc[8,4,2,2], strides=[2,2])
    d = DepthToSpace(i, blocksize=2)
    shape = Shape(a)
    nc = Slice(shape, starts=[0], ends=[2], axes=[0])
    hw = Slice(shape, starts=[2], ends=[4], axes=[0])
    c = Shape(up)
    n1 = Slice(c, starts=[0], ends=[2], axes=[0])
    size = Concat(n1, hw, axis=0)
    y = Resize(up, _, _, size, mode=linear)
    z = PRelu(y, slope[4,1,1])
    return z
  )"),
            "");
}

TEST(Batchable, RecurrentLayersOverTheStepsOfEachItem) {
  const std::string head = "x: f32[n,t,8]\nf = Transpose(x, perm=[1,0,2])\n";
  const std::string tail = "q = Squeeze(y, axes=[1])\nz = Transpose(q, perm=[1,0,2])\nreturn z\n";
  EXPECT_EQ(why_not(head + "y, h, c = LSTM(f, w[1,16,8], r[1,16,4], b[1,32], hidden_size=4)\n" + tail), "");
  EXPECT_EQ(why_not(head + "y, h = GRU(f, w[1,12,8], r[1,12,4], hidden_size=4)\n" + tail), "");
  EXPECT_EQ(why_not("x: f32[n,t,8]\ny, h = RNN(x, w[1,4,8], r[1,4,4], hidden_size=4)\nreturn h"),
            "node 'y' (RNN) operand 0 has the batch elsewhere");
  EXPECT_EQ(why_not(head + "y, h = GRU(f, w[1,12,8], r[1,12,4], _, _, first[1,1,4], hidden_size=4)\n" + tail),
            "node 'y' (GRU) operand 5 has the batch elsewhere");
}

TEST(Batchable, ParametersOfElementsThatTellItemsApart) {
  const auto one = [](std::string_view statement) { return why_not("x: f32[n,4]\n" + std::string(statement) + "\nreturn y"); };
  EXPECT_EQ(one("q = QuantizeLinear(x, s:f32[]{0.5}, z:u8[]{3})\ny = DequantizeLinear(q, s2:f32[4]{1.0,2.0,3.0,4.0})"), "");
  EXPECT_EQ(one("y = QuantizeLinear(x, s:f32[2]{0.5,0.25}, axis=0)"), "node 'y' (QuantizeLinear) operand 1 differs along the batch axis");
  EXPECT_EQ(one("y = PRelu(x, slope[3,1])"), "node 'y' (PRelu) operand 1 differs along the batch axis");
  EXPECT_EQ(one("y, i = TopK(x, i64{2})"), "");
  EXPECT_EQ(one("y, i = TopK(x, i64{2}, axis=0)"), "node 'y' (TopK) works along the batch axis");
}

TEST(Batchable, AttentionAsOneOperator) {
  const std::string head = "q: f32[n,2,s,8]\nk: f32[n,2,t,8]\nv: f32[n,2,t,8]\n";
  const auto one = [&](std::string_view rest) { return why_not(head + std::string(rest) + "\nreturn y"); };
  EXPECT_EQ(one("y = Attention(q, k, v)"), "");
  EXPECT_EQ(one("m: bool[n,1,s,t]\ny = Attention(q, k, v, m)"), "");
  EXPECT_EQ(why_not("q: f32[n,2,6,8]\ny = Attention(q, q, q, mask[6,6])\nreturn y"), "");
  EXPECT_EQ(why_not("q: f32[n,2,6,8]\nc: f32[n,2,4,8]\ny, k2, v2 = Attention(q, q, q, _, c, c)\nreturn y, k2"), "");
  EXPECT_EQ(why_not("q: f32[n,2,6,8]\nt = Transpose(q, perm=[2,1,0,3])\ny = Attention(t, t, t)\nreturn y"),
            "node 'y' (Attention) operand 0 has the batch elsewhere");
  EXPECT_EQ(why_not("q: f32[n,2,6,8]\ny = Attention(q, k[1,2,6,8], k[1,2,6,8])\nreturn y"),
            "node 'y' (Attention) operand 1 has the batch elsewhere");
}

TEST(Batchable, EinsumWithOneLabelForTheBatch) {
  const auto one = [](const std::string& equation, const std::string& operands, const std::string& inputs) {
    return why_not(inputs + "y = Einsum(" + operands + ", equation=\"" + equation + "\")\nreturn y");
  };
  const std::string x = "x: f32[n,4,8]\n", z = "z: f32[n,5,8]\n";
  EXPECT_EQ(one("bij,bkj->bik", "x, z", x + z), "");
  EXPECT_EQ(one("bij,jk->bik", "x, w[8,3]", x), "");
  EXPECT_EQ(one("...ij,jk", "x, w[8,3]", x), "");
  EXPECT_EQ(one("bij->ij", "x", x), "node 'y' (Einsum) sums over the batch axis");
  EXPECT_EQ(one("bij,kij->bk", "x, x", x), "node 'y' (Einsum) brings different axes of the batch together");
  EXPECT_EQ(one("bij,bj->bi", "x, w[1,8]", x), "node 'y' (Einsum) operand 1 has the batch elsewhere");
}

TEST(Batchable, ImagesSampledAtPlacesOfTheirOwn) {
  EXPECT_EQ(why_not("x: f32[n,3,8,8]\ng: f32[n,4,4,2]\ny = GridSample(x, g)\nreturn y"), "");
  EXPECT_EQ(why_not("x: f32[n,3,8,8]\ny = GridSample(x, g[1,4,4,2])\nreturn y"), "node 'y' (GridSample) operand 1 has the batch elsewhere");
}

TEST(Batchable, QuantisedOperators) {
  const std::string x = "x: f32[n,3,8,8]\nq = QuantizeLinear(x, s:f32[]{0.5}, z:u8[]{3})\n";
  const std::string back = "y = DequantizeLinear(r, s2:f32[]{0.5}, z2:u8[]{3})\nreturn y";
  const std::string conv =
      "r = QLinearConv(q, a:f32[]{0.5}, b:u8[]{3}, w:i8[3,3,1,1]{1,2,3,4,5,6,7,8,9}, c:f32[]{0.5}, d:i8[]{0}, e:f32[]{0.5}, f:u8[]{3}";
  EXPECT_EQ(why_not(x + conv + ")\n" + back), "");
  EXPECT_EQ(why_not(x + conv + ", _, q, g:f32[]{0.5}, h:u8[]{3}, i:f32[]{0.5}, j:u8[]{3})\n" + back), "");
  EXPECT_EQ(
      why_not(x +
              "r = QuantizedBinary(q, a:f32[]{0.5}, b:u8[]{3}, q, c:f32[]{0.5}, d:u8[]{3}, e:f32[]{0.5}, f:u8[]{3}, function=\"Add\")\n" +
              back),
      "");
  const std::string rows = "x: f32[n,2]\nq = QuantizeLinear(x, s:f32[]{0.5}, z:u8[]{3})\n";
  const std::string weight = ", a:f32[]{0.5}, b:u8[]{3}, w:i8[2,2]{1,2,3,4}, c:f32[]{0.5}, d:i8[]{0}, ";
  EXPECT_EQ(why_not(rows + "y = QuantizedMatMul(q" + weight + "_)\nreturn y"), "");
  EXPECT_EQ(why_not(rows + "r = QLinearMatMul(q" + weight + "e:f32[]{0.5}, f:u8[]{3})\n" + back), "");
  EXPECT_EQ(why_not(rows +
                    "t = Transpose(q)\nr = QLinearMatMul(w2:u8[2,2]{1,2,3,4}, a:f32[]{0.5}, b:u8[]{3}, t, c:f32[]{0.5}, d:u8[]{0}, "
                    "e:f32[]{0.5}, f:u8[]{3})\n" +
                    back),
            "node 'r' (QLinearMatMul) multiplies by a matrix with the batch in its rows or columns");
  EXPECT_EQ(why_not("x: f32[n,2]\ny = DynamicQuantizeMatMul(x, w:i8[2,2]{1,2,3,4}, s:f32[]{0.5})\nreturn y"),
            "node 'y' (DynamicQuantizeMatMul) quantises the whole batch with one scale");
  EXPECT_EQ(why_not("x: f32[n,2]\ny = DynamicQuantizeMatMul(x, w:i8[2,2]{1,2,3,4}, s:f32[]{0.5}, by_row=1)\nreturn y"), "");
}

TEST(Batchable, PlacesLookedUpWithinAnItem) {
  const std::string head = "x: f32[n,4,6]\ni: i64[n,4,2]\n";
  EXPECT_EQ(why_not(head + "y = GatherElements(x, i, axis=2)\nreturn y"), "");
  EXPECT_EQ(why_not(head + "y = GatherElements(x, i, axis=0)\nreturn y"), "node 'y' (GatherElements) picks items of the batch");
  EXPECT_EQ(why_not("x: f32[n,4,6]\ny = Trilu(x)\nreturn y"), "");
  EXPECT_EQ(why_not("x: f32[n,6]\ny = Trilu(x)\nreturn y"), "node 'y' (Trilu) works along the batch axis");
}

TEST(Batchable, RepeatedForEachItem) {
  const std::string head = "x: f32[n,4]\ns = Shape(x)\nn = Slice(s, starts=[0], ends=[1], axes=[0])\nr = Concat(n, i64{1}, axis=0)\n";
  EXPECT_EQ(why_not(head + "t = Tile(probe[1,4], r)\ny = Add(x, t)\nreturn y"), "");
  EXPECT_EQ(why_not(head + "t = Tile(probe[3,4], r)\nq = Reshape(t, i64{-1,12})\nreturn q"), "");
  EXPECT_EQ(why_not(head + "turned = Concat(i64{1}, n, axis=0)\ny = Tile(x, turned)\nreturn y"),
            "node 'y' (Tile) operand 1 depends on the batch");
}

TEST(Batchable, LookedUpInATable) {
  const std::string label = "x: f32[n,4]\ni = ArgMax(x, axis=1)\n";
  EXPECT_EQ(why_not(label + "l = ArrayFeatureExtractor(words[1,4], i)\ny = Reshape(l, i64{-1})\nreturn y"), "");
  EXPECT_EQ(why_not("i: i64[n,2]\nl = ArrayFeatureExtractor(words[1,4], i)\ny = Reshape(l, i64{-1,2})\nreturn y"), "");
  EXPECT_EQ(why_not("i: i64[n,2]\nt = Transpose(i)\nl = ArrayFeatureExtractor(words[1,4], t)\nreturn l"),
            "node 'l' (ArrayFeatureExtractor) has the batch elsewhere");
  EXPECT_EQ(why_not("i: i64[n,2]\ny = GatherND(table[5,6,7], i)\nreturn y"), "");
  EXPECT_EQ(why_not("x: f32[n,5]\ni: i64[n,1]\ny = GatherND(x, i, batch_dims=1)\nreturn y"), "");
  EXPECT_EQ(why_not("x: f32[n,5]\ni: i64[n,1]\ny = GatherND(x, i)\nreturn y"),
            "node 'y' (GatherND) looks up in one item what another may ask for");
  EXPECT_EQ(why_not("x: f32[n,3,4]\nt = Transpose(x, perm=[1,2,0])\nq = GatherND(t, k:i64[2,2]{0,1,2,3})\ny = Transpose(q)\nreturn y"), "");
  EXPECT_EQ(why_not("x: f32[n,3,4]\ny = GatherND(x, k:i64[2,2]{0,1,2,3})\nreturn y"), "node 'y' (GatherND) picks items of the batch");
  EXPECT_EQ(why_not("x: f32[n,64,1]\ny = STFT(x, i64[]{16}, window[32])\nreturn y"), "");
  EXPECT_EQ(why_not("x: f32[n,6,2]\ny = DFT(x)\nreturn y"), "");
  EXPECT_EQ(why_not("x: f32[n,3,6,1]\ny = DFT(x, i64[]{8}, i64[]{1}, onesided=1)\nz = DFT(y, _, i64[]{-2})\nreturn z"), "");
  EXPECT_EQ(why_not("i: i64[n,3]\nq = Gather(table:u8[2,4]{1,2,3,4,5,6,7,8}, i)\ns = Gather(scales[2,2], i)\n"
                    "y = DequantizeLinear(q, s, axis=-1, block_size=2)\nreturn y"),
            "");
  EXPECT_EQ(why_not("x: f32[n,5]\ny = OneHotEncoder(x, cats_int64s=[1,2,3])\nreturn y"), "");
}

TEST(Batchable, RefusesWhatMixesItems) {
  const auto one = [](std::string_view statement) { return why_not("x: f32[n,4]\n" + std::string(statement) + "\nreturn y"); };
  EXPECT_EQ(one("y = ReduceMean(x, axes=[0])"), "node 'y' (ReduceMean) reduces the batch axis");
  EXPECT_EQ(one("y = ReduceMax(x)"), "node 'y' (ReduceMax) reduces the batch axis");
  EXPECT_EQ(one("y = Softmax(x, axis=0)"), "node 'y' (Softmax) works along the batch axis");
  EXPECT_EQ(one("y = Concat(x, x, axis=0)"), "node 'y' (Concat) concatenates along the batch axis");
  EXPECT_EQ(one("y = Reshape(x, i64{4,-1})"), "node 'y' (Reshape) reshapes [n,4] to [4,n], which mixes the batch with other axes");
  EXPECT_EQ(one("y = Reshape(x, i64{-1})"), "output 'y' has shape [4*n], the batch is not its first axis");
  EXPECT_EQ(one("y = Transpose(x)"), "output 'y' has shape [4,n], the batch is not its first axis");
  EXPECT_EQ(one("t = Transpose(x)\ny = MatMul(x, t)"), "node 'y' (MatMul) multiplies by a matrix with the batch in its rows or columns");
  EXPECT_EQ(one("t = Transpose(x)\ny = MatMul(t, x)"), "node 'y' (MatMul) sums over the batch axis");
  EXPECT_EQ(one("y = Add(x, table[7,1])"), "node 'y' (Add) has shape [7,4], in which the batch axis is not kept apart");
  EXPECT_EQ(one("y = Slice(x, starts=[0], ends=[1], axes=[0])"), "node 'y' (Slice) changes the batch axis");
  EXPECT_EQ(one("y = Slice(x, starts=[-1], ends=[-9223372036854775807], axes=[0], steps=[-1])"), "node 'y' (Slice) changes the batch axis");
  EXPECT_EQ(one("y = Gather(x, i64{0}, axis=0)"), "node 'y' (Gather) picks items of the batch");
  EXPECT_EQ(one("y = NonZero(x)"), "node 'y' (NonZero) depends on the whole batch");
  EXPECT_EQ(one("y = CumSum(x, i64[]{0})"), "node 'y' (CumSum) works along the batch axis");
  EXPECT_EQ(why_not("x: f32[n,6,2]\ny = DFT(x, _, i64[]{0})\nreturn y"), "node 'y' (DFT) works along the batch axis");
  EXPECT_EQ(why_not("x: f32[n,2]\ny = DFT(x)\nreturn y"), "node 'y' (DFT) works along the batch axis");
}

TEST(Batchable, RefusesTheSizeOfTheBatchAsData) {
  EXPECT_EQ(why_not(R"(
    x: f32[n,4]
    s = Shape(x)
    b = Gather(s, i64[]{0})
    f = Cast(b, to=f32)
    y = Div(x, f)
    return y
  )"),
            "node 'y' (Div) computes with the size of the batch");
  EXPECT_EQ(why_not("x: f32[n,4]\ny = Shape(x)\nreturn y"), "output 'y' has no batch axis");
}

TEST(Batchable, TextsAreRows) {
  EXPECT_EQ(why_not(R"(
    city: str[n,1]
    street: str[n,1]
    c = ChangeCase(city, to="LOWER")
    r = RegexReplace(c, pattern="[^a-z]", rewrite="", all=1)
    both = StringConcat(r, street)
    known = RegexFullMatch(street, pattern="[A-Z].*")
    k = LabelEncoder(r, keys_strings=["beijing","shanghai"], values_int64s=[1,2], default_int64=0, to="i64")
    h = HashBucket(both, buckets=16)
    e = Gather(table[3,4], k)
    f = Gather(more[16,4], h)
    y = Add(e, f)
    return y, both, known
  )"),
            "");
}

TEST(Batchable, TextsOfOneListStayInPlaceWithoutStopWords) {
  const std::string head = "x: str[n,1]\nl = Reshape(x, i64{-1})\n", tail = "y = HashBucket(s, buckets=9)\nreturn y";
  EXPECT_EQ(why_not(head + "s = StringNormalizer(l, case_change_action=\"LOWER\")\n" + tail), "");
  EXPECT_EQ(why_not(head + "s = StringNormalizer(l, stopwords=[\"the\"])\n" + tail),
            "node 's' (StringNormalizer) may drop texts, and others move up");
  EXPECT_THAT(why_not("x: str[1,n]\ns = StringNormalizer(x)\nreturn s"), testing::HasSubstr("has no batch axis"));
}

TEST(Batchable, WordsOfATextAreCountedButNotTheirPadding) {
  const std::string cut = "x: str[n]\nt = Tokenizer(x, separators=[\" \"], mincharnum=1, pad_value=\"#\")\n";
  const auto counts = [](const std::string& pool) {
    return "y = TfIdfVectorizer(t, mode=\"TF\", min_gram_length=1, max_gram_length=1, ngram_counts=[0], ngram_indexes=[0,1], "
           "pool_strings=[" +
           pool + "])\nreturn y";
  };
  EXPECT_EQ(why_not(cut + counts("\"a\",\"b\"")), "");
  EXPECT_EQ(why_not(cut + counts("\"a\",\"#\"")), "node 'y' (TfIdfVectorizer) counts what fills rows up to the longest of the batch");
  const std::string column = "x: str[n,1]\ns = Tokenizer(x, separators=[\" \"], mincharnum=1, pad_value=\"#\")\nt = Flatten(s, axis=1)\n";
  EXPECT_EQ(why_not(column + counts("\"a\",\"b\"")), "");
  EXPECT_EQ(why_not(column + counts("\"a\",\"#\"")), "node 'y' (TfIdfVectorizer) counts what fills rows up to the longest of the batch");
  const std::string pair = "x: str[n,2]\ns = Tokenizer(x, separators=[\" \"], mincharnum=1, pad_value=\"#\")\nt = Flatten(s, axis=1)\n";
  EXPECT_EQ(why_not(pair + counts("\"a\",\"b\"")), "node 't' (Flatten) reads rows that are as long as the longest text of a batch");
  EXPECT_EQ(why_not(cut + "return t"), "output 't' is as long as the longest text of a batch");
  EXPECT_EQ(why_not(cut + "s = Shape(t)\nreturn s"), "node 's' (Shape) reads rows that are as long as the longest text of a batch");
  EXPECT_EQ(why_not(cut + "e = HashBucket(t, buckets=4)\ny = ReduceMax(e, axes=[1])\nreturn y"),
            "node 'e' (HashBucket) reads rows that are as long as the longest text of a batch");
  EXPECT_EQ(why_not("x: str[n]\np, c = StringSplit(x)\nreturn c"), "");
  EXPECT_EQ(why_not("x: str[n]\np, c = StringSplit(x)\nreturn c, p"), "output 'p' is as long as the longest text of a batch");
  EXPECT_EQ(why_not("x: str[n]\np, c = StringSplit(x, width=5)\nreturn c, p"), "");
  EXPECT_EQ(why_not("x: str[n]\ny = TfIdfVectorizer(x, mode=\"TF\", ngram_counts=[0], ngram_indexes=[0], pool_strings=[\"a\"])\nreturn y"),
            "node 'y' (TfIdfVectorizer) counts in the whole batch");
}

TEST(Batchable, RefusesInputsWithoutACommonBatch) {
  EXPECT_EQ(why_not("x: f32[4,8]\ny = Relu(x)\nreturn y"), "input 'x' has no batch axis: its shape is f32[4,8]");
  EXPECT_EQ(why_not("x: f32[n,8]\nz: f32[m,8]\ny = Relu(x)\nw = Relu(z)\nreturn y, w"),
            "input 'z' has 'm' on its first axis, another input has 'n'");
  EXPECT_EQ(why_not("x: f32[n,n]\ny = Relu(x)\nreturn y"), "input 'x' has 'n' on more than one axis");
  EXPECT_EQ(why_not("x: f32[n,8]\ny = Relu(x)\nreturn y, k[3]"), "output 'k' has no batch axis");
}

}  // namespace
}  // namespace serin::graph
