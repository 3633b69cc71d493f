// microsoft_group_query.cc: com.microsoft's GroupQueryAttention, the attention of generating models.
//
// Each sample of a batch has its own length: seqlens_k says, less one, how many keys it has with this step's. The new keys and values are written
// behind those it has (TensorScatter into the past followed by room for them), queries and keys are turned by their positions, and a mask
// says which keys a query looks at: those up to its own position, and no further back than the window.

#include <fmt/format.h>

#include <limits>

#include "runtime/formats/onnx/microsoft.h"

namespace serin::formats::onnx {

using graph::kNone;
using graph::Op;
using graph::ValueId;

namespace {

struct Heads {
  int64_t q, kv;
};

class GroupQuery {
 public:
  explicit GroupQuery(NodeImport& node) : node_(node), heads_{node.required_integer("num_heads"), node.required_integer("kv_num_heads")} {}

  void run() {
    refuse_what_is_missing();
    if (heads_.q < 1 || heads_.kv < 1) return node_.corrupt("num_heads and kv_num_heads must be at least 1");
    separate();
    positions();
    if (node_.flag("do_rotary", false)) turn();
    fill_cache();
    attend();
  }

 private:
  void refuse_what_is_missing() {
    if (node_.number("softcap", 0) < 0) node_.corrupt("softcap is negative");
    for (const char* key : {"smooth_softmax", "qk_output"}) {
      if (node_.integer(key, 0) > 0) node_.unsupported(fmt::format("attribute '{}'", key));
    }
    for (const char* key : {"k_quant_type", "v_quant_type"}) {
      if (node_.text(key, "NONE") != "NONE") node_.unsupported("a quantised cache");
    }
    for (const char* key : {"kv_cache_bit_width", "qk_norm_epsilon"}) node_.ignore(key);
    if (node_.integer("sliding_window_cache", 0) != 0) node_.unsupported("a sliding cache");
    if (node_.integer("causal", 1) != 1) node_.unsupported("attends forwards, too");
    for (size_t i = 11; i < node_.input_count(); ++i) {
      if (node_.input(i) != kNone) node_.unsupported(fmt::format("operand {}", i));
    }
    if (node_.input(3) == kNone || node_.input(4) == kNone || node_.input(5) == kNone) node_.unsupported("no past or no lengths are given");
    if (node_.wants_output(3)) node_.unsupported("the scores are asked for");
  }

  /// q, k and v as [batch, heads, length, head]; packed in one operand, or each its own.
  void separate() {
    const auto headed = [&](std::string_view name, ValueId x, int64_t heads) { return reshape_step(node_, name, x, {0, 0, heads, -1}); };
    const auto turned = [&](std::string_view name, ValueId x) {
      return node_.step(Op::kTranspose, name, {x}, {{"perm", Integers{0, 2, 1, 3}}});
    };
    ValueId q = kNone, k = kNone, v = kNone;
    if (node_.input(1) == kNone) {
      const auto parts =
          split_step(node_, "qkv", headed("packed", node_.input(0), heads_.q + 2 * heads_.kv), 2, 3, {heads_.q, heads_.kv, heads_.kv});
      q = parts[0], k = parts[1], v = parts[2];
    } else {
      q = headed("q_heads", node_.input(0), heads_.q), k = headed("k_heads", node_.input(1), heads_.kv),
      v = headed("v_heads", node_.input(2), heads_.kv);
    }
    q_ = turned("q", q), k_ = turned("k", k), v_ = turned("v", v);
  }

  ValueId scalar_of(std::string_view name, ValueId vector) { return node_.step(Op::kSqueeze, name, {vector}, {{"axes", Integers{0}}}); }
  ValueId counted(std::string_view name, ValueId count) {
    return node_.step(Op::kRange, name,
                      {index_step(node_, fmt::format("{}_from", name), 0), count, index_step(node_, fmt::format("{}_by", name), 1)});
  }

  /// How many keys each sample has before this step [batch], and where its queries stand [batch, length].
  void positions() {
    const ValueId length = dim_step(node_, "length", q_, 2);
    ValueId lengths = node_.step(Op::kCast, "seqlens", {node_.input(5)}, {{"to", std::string("i64")}});
    lengths = node_.step(Op::kReshape, "seqlens_row", {lengths, integers_step(node_, "one_row", {-1})}, {{"allowzero", int64_t{0}}});
    const ValueId after = add_step(node_, "lengths", lengths, index_step(node_, "this", 1));
    before_ = node_.step(Op::kMax, "before", {node_.step(Op::kSub, "before_any", {after, length}), index_step(node_, "none", 0)});
    const ValueId steps = counted("steps", scalar_of("length_number", length));
    const ValueId first = node_.step(Op::kUnsqueeze, "first", {before_}, {{"axes", Integers{1}}});
    at_ = node_.input(9) != kNone ? node_.input(9) : add_step(node_, "positions", first, steps);
    query_at_ = add_step(node_, "query_positions", first, steps);
  }

  void turn() {
    if (node_.input(7) == kNone || node_.input(8) == kNone) return node_.corrupt("do_rotary needs cos_cache and sin_cache");
    const graph::Attributes attributes{{"interleaved", node_.integer("rotary_interleaved", 0)}};
    q_ = node_.step(Op::kRotaryEmbedding, "q_turned", {q_, node_.input(7), node_.input(8), at_}, attributes);
    k_ = node_.step(Op::kRotaryEmbedding, "k_turned", {k_, node_.input(7), node_.input(8), at_}, attributes);
  }

  void fill_cache() {
    const auto filled = [&](std::string_view name, ValueId past, ValueId fresh) {
      const ValueId room =
          node_.step(Op::kMul, fmt::format("{}_room", name), {fresh, number_like(node_, fmt::format("{}_zero", name), 0, past)});
      const ValueId cache = node_.step(Op::kConcat, fmt::format("{}_cache", name), {past, room}, {{"axis", int64_t{2}}});
      return node_.step(Op::kTensorScatter, name, {cache, fresh, before_}, {{"axis", int64_t{2}}, {"mode", std::string("linear")}});
    };
    k_ = filled("present_key", node_.input(3), k_);
    v_ = filled("present_value", node_.input(4), v_);
    define_output(node_, 1, k_);
    define_output(node_, 2, v_);
  }

  /// Which keys each query looks at: bool [batch, 1, length, keys].
  ValueId visible() {
    const ValueId keys = counted("keys", scalar_of("total_number", dim_step(node_, "total", k_, 2)));
    const ValueId here = node_.step(Op::kUnsqueeze, "here", {query_at_}, {{"axes", Integers{1, 3}}});
    const ValueId past = node_.step(Op::kLessOrEqual, "not_ahead", {keys, here});
    const int64_t window = node_.integer("local_window_size", -1);
    if (window < 0) return past;
    const ValueId oldest = node_.step(Op::kSub, "oldest", {here, index_step(node_, "window", window)});
    return node_.step(Op::kAnd, "in_window", {past, node_.step(Op::kGreater, "recent", {keys, oldest})});
  }

  void attend() {
    graph::Attributes attributes;
    if (const double scale = node_.number("scale", 0); scale != 0) attributes.emplace("scale", scale);
    if (const double softcap = node_.number("softcap", 0); softcap > 0) attributes.emplace("softcap", softcap);
    ValueId mask = visible();
    if (node_.input(10) != kNone) {
      const ValueId like = node_.input(10);
      mask = node_.step(Op::kWhere, "mask", {mask, like, number_like(node_, "hidden", -std::numeric_limits<double>::infinity(), like)});
    }
    const ValueId y = node_.step(Op::kAttention, "attention", {q_, k_, v_, mask}, std::move(attributes));
    const ValueId turned = node_.step(Op::kTranspose, "rows", {y}, {{"perm", Integers{0, 2, 1, 3}}});
    define_output(node_, 0, reshape_step(node_, "output", turned, {0, 0, -1}));
  }

  NodeImport& node_;
  const Heads heads_;
  ValueId q_ = kNone, k_ = kNone, v_ = kNone;
  ValueId before_ = kNone, at_ = kNone, query_at_ = kNone;
};

}  // namespace

void import_group_query_attention(NodeImport& node, Op) { GroupQuery(node).run(); }

}  // namespace serin::formats::onnx
