// attention.cc: reads the description of an Attention, refuses contradictions, and computes the sizes and strides of a run.

#include "kernels/attention.h"

#include <algorithm>
#include <cmath>

namespace serin::kernels {

namespace {

using Operands = AttentionOperands;

bool fail(std::string& why, std::string reason) {
  why = std::move(reason);
  return false;
}

bool read_heads(const Attributes& attributes, const Shape& q, const Shape& k, const Shape& v, AttentionOp& op, std::string& why) {
  op.flat = q.rank() == 3;
  if ((q.rank() != 3 && q.rank() != 4) || k.rank() != q.rank() || v.rank() != q.rank())
    return fail(why, "q, k and v must all be 3-D or all 4-D");
  if (!op.flat) {
    op.q_heads = q[1], op.kv_heads = k[1], op.head = q[3], op.v_head = v[3];
    if (v[1] != k[1]) return fail(why, "k and v have different numbers of heads");
    if (k[3] != q[3]) return fail(why, "q and k have heads of different sizes");
  } else {
    op.q_heads = attributes.integer("q_num_heads", 0);
    op.kv_heads = attributes.integer("kv_num_heads", op.q_heads);
    if (op.q_heads < 1 || op.kv_heads < 1) return fail(why, "q_num_heads and kv_num_heads are needed with 3-D operands");
    if (q[2] % op.q_heads != 0 || k[2] % op.kv_heads != 0 || v[2] % op.kv_heads != 0) return fail(why, "heads do not divide the operands");
    op.head = q[2] / op.q_heads, op.v_head = v[2] / op.kv_heads;
    if (k[2] / op.kv_heads != op.head) return fail(why, "q and k have heads of different sizes");
  }
  if (op.kv_heads < 1 || op.q_heads % op.kv_heads != 0) return fail(why, "the heads of q are not a multiple of those of k");
  const size_t row = op.flat ? 1 : 2;
  if (k[row] != v[row]) return fail(why, "k and v have different lengths");
  if (k[0] != q[0] || v[0] != q[0]) return fail(why, "q, k and v have different batches");
  return true;
}

/// A cache of the past fits what it is put before.
bool check_past(const AttentionOp& op, const Shape& past, int64_t batch, int64_t head, std::string& why) {
  if (past.rank() == 4 && past[0] == batch && past[1] == op.kv_heads && past[3] == head) return true;
  return fail(why, "a past key or value has shape " + past.str());
}

bool check_mask(const AttentionOp& op, std::span<const TensorDesc> in, int64_t batch, int64_t q_len, int64_t total, std::string& why) {
  const TensorDesc& mask = in[Operands::kMask];
  if (mask.dtype == DType::kUndefined) return true;
  if (mask.dtype != DType::kBool && mask.dtype != in[Operands::kQ].dtype && mask.dtype != DType::kFloat32)
    return fail(why, "the mask is neither bool nor f32 nor of q's type");
  const Shape& shape = mask.shape;
  const int64_t wanted[] = {batch, op.q_heads, q_len};
  bool fits = shape.rank() >= 1 && shape.rank() <= 4 && shape.back() <= total;
  for (size_t axis = 0; fits && axis + 1 < shape.rank(); ++axis) {
    const int64_t dim = shape[axis];
    fits = dim == 1 || dim == wanted[axis + 4 - shape.rank()];
  }
  return fits || fail(why, "the mask has shape " + shape.str());
}

}  // namespace

namespace {

/// The view that attribute `key` describes, if it lies within `tensor`.
bool read_view(const Attributes& attributes, std::string_view key, const TensorDesc& tensor, std::optional<HeadsView>& view,
               std::string& why) {
  const std::vector<int64_t> v = attributes.integers(key);
  if (v.empty()) return true;
  if (v.size() != 8 || tensor.bounded) return fail(why, "a view of 8 numbers into a tensor of fixed size is needed");
  view = HeadsView{v[0], v[1], v[2], v[3], v[4], {v[5], v[6], v[7]}};
  if (std::ranges::any_of(v, [](int64_t n) { return n < 0; })) return fail(why, "a view leaves its tensor");
  const auto reach = [&](size_t size, size_t stride) {
    return static_cast<double>(v[size] - 1) * static_cast<double>(v[stride]);
  };  // cannot wrap
  const bool empty = v[0] == 0 || v[1] == 0 || v[2] == 0 || v[3] == 0;
  const double last = static_cast<double>(v[4]) + static_cast<double>(v[3]) + reach(0, 5) + reach(1, 6) + reach(2, 7);
  if (empty || last <= static_cast<double>(tensor.shape.elements())) return true;
  return fail(why, "a view leaves its tensor");
}

Shape shape_of(const std::optional<HeadsView>& view, const Shape& plain) {
  return view ? Shape{view->batch, view->heads, view->rows, view->width} : plain;
}

}  // namespace

std::optional<AttentionOp> attention_of(const Attributes& attributes, std::span<const TensorDesc> in, std::span<const TensorDesc> out,
                                        std::string& why) {
  const auto has = [&](size_t i) { return i < in.size() && in[i].dtype != DType::kUndefined; };
  AttentionOp op;
  if (in.size() < 3 || out.empty()) {
    why = "needs q, k and v";
    return std::nullopt;
  }
  if (!read_view(attributes, "q_view", in[0], op.q_view, why) || !read_view(attributes, "k_view", in[1], op.k_view, why) ||
      !read_view(attributes, "v_view", in[2], op.v_view, why)) {
    return std::nullopt;
  }
  const Shape q = shape_of(op.q_view, in[0].shape), k = shape_of(op.k_view, in[1].shape), v = shape_of(op.v_view, in[2].shape);
  if (!read_heads(attributes, q, k, v, op, why)) return std::nullopt;
  op.heads_inside = !op.flat && attributes.integer("heads_inside", 0) != 0;
  op.softcap = attributes.number("softcap", 0);
  op.causal = attributes.integer("is_causal", 0) != 0;
  op.masked_to_zero = attributes.integer("masked_to_zero", 0) != 0;
  op.scores_mode = attributes.integer("qk_matmul_output_mode", 0);
  op.scale = attributes.number("scale", op.head > 0 ? 1 / std::sqrt(static_cast<double>(op.head)) : 1);

  const size_t row = op.flat ? 1 : 2;
  int64_t past = 0;
  if (has(Operands::kPastKey) != has(Operands::kPastValue)) {
    why = "past_key and past_value come together";
    return std::nullopt;
  }
  if (has(Operands::kPastKey)) {
    const Shape &past_key = in[Operands::kPastKey].shape, &past_value = in[Operands::kPastValue].shape;
    if (!check_past(op, past_key, q[0], op.head, why) || !check_past(op, past_value, q[0], op.v_head, why)) return std::nullopt;
    if (past_key[2] != past_value[2]) {
      why = "past_key and past_value have different lengths";
      return std::nullopt;
    }
    past = past_key[2];
  }
  if (in.size() > Operands::kMask && !check_mask(op, in, q[0], q[row], past + k[row], why)) return std::nullopt;
  if (has(Operands::kNonpad) && (in[Operands::kNonpad].dtype != DType::kInt64 || in[Operands::kNonpad].shape != Shape{q[0]})) {
    why = "nonpad_kv_seqlen must be one i64 for each sample";
    return std::nullopt;
  }
  return op;
}

AttentionRun::AttentionRun(const AttentionOp& op, std::span<const TensorView> in) {
  const auto length = [&](const Shape& shape) { return shape[op.flat ? 1 : 2]; };
  const auto strides = [&](int64_t heads, int64_t rows, int64_t width, bool flat) {
    return flat ? HeadStrides{rows * heads * width, width, heads * width} : HeadStrides{heads * rows * width, rows * width, width};
  };
  batch = shape_of(op.q_view, in[Operands::kQ].shape)[0];
  q_len = length(shape_of(op.q_view, in[Operands::kQ].shape));
  kv_len = length(shape_of(op.k_view, in[Operands::kK].shape));
  const bool has_past = in.size() > Operands::kPastKey && in[Operands::kPastKey].dtype != DType::kUndefined;
  past = has_past ? in[Operands::kPastKey].shape[2] : 0;
  total = past + kv_len;
  q = strides(op.q_heads, q_len, op.head, op.flat);
  k = strides(op.kv_heads, kv_len, op.head, op.flat);
  v = strides(op.kv_heads, kv_len, op.v_head, op.flat);
  y = strides(op.q_heads, q_len, op.v_head, op.flat || op.heads_inside);
  if (op.q_view) q = op.q_view->strides, q_offset = op.q_view->offset;
  if (op.k_view) k = op.k_view->strides, k_offset = op.k_view->offset;
  if (op.v_view) v = op.v_view->strides, v_offset = op.v_view->offset;
  past_k = strides(op.kv_heads, past, op.head, false);
  past_v = strides(op.kv_heads, past, op.v_head, false);
  present_k = strides(op.kv_heads, total, op.head, false);
  present_v = strides(op.kv_heads, total, op.v_head, false);
}

AttentionRun::AttentionRun(const AttentionOp& op, std::span<const TensorDesc> in)
    : AttentionRun(op, [&in] {
        std::vector<TensorView> bounds;
        for (const TensorDesc& input : in) bounds.push_back({input.dtype, input.shape, nullptr});
        return bounds;
      }()) {}

MaskStrides::MaskStrides(const Shape& mask, const AttentionOp& op, const AttentionRun& run) {
  columns = mask.back();
  int64_t step = columns;
  int64_t* const strides[] = {&b, &h, &q};
  const int64_t sizes[] = {run.batch, op.q_heads, run.q_len};
  for (size_t axis = mask.rank() - 1; axis-- > 0;) {
    const size_t target = axis + 4 - mask.rank();
    if (mask[axis] != 1 && mask[axis] == sizes[target]) *strides[target] = step;
    step *= mask[axis];
  }
}

}  // namespace serin::kernels
