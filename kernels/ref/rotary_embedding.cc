// rotary_embedding.cc: RotaryEmbedding: pairs of elements of each head, turned by an angle that depends on the position.
//
// x is [batch, heads, length, head] or [batch, length, heads * head]. The first `rotary_embedding_dim` elements of a head are turned: element i
// with element i + half, or neighbours where interleaved. The angles' cosines and sines are [positions, half] with position_ids, else
// [batch, length, half]. One position id is the first of consecutive ones (com.microsoft's form).

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

namespace {

struct Rotary {
  bool flat, interleaved;
  int64_t heads, head, half;
};

/// The row of the caches for (batch, step), or nothing where the file's position is not in them.
std::optional<int64_t> cache_row(const TensorView* ids, const TensorView& cache, int64_t b, int64_t step, int64_t length) {
  if (!ids) return b * length + step;
  const int64_t* const id = ids->as<const int64_t>();
  const int64_t position = ids->elements() == 1 ? id[0] + step : id[b * length + step];
  return position >= 0 && position < cache.shape[0] ? std::optional(position) : std::nullopt;
}

template <class T>
Fault run(const Rotary& op, Inputs in, Outputs out) {
  const Shape& shape = in[0].shape;
  const int64_t batch = shape[0], length = op.flat ? shape[1] : shape[2];
  const int64_t head_step = op.flat ? op.head : length * op.head, row_step = op.flat ? op.heads * op.head : op.head;
  const TensorView* const ids = operand(in, 3);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t step = 0; step < length; ++step) {
      const auto at = cache_row(ids, in[1], b, step, length);
      if (!at) return "position_ids leave the " + std::to_string(in[1].shape[0]) + " rows of the caches";
      const T* const cosine = in[1].as<const T>() + *at * op.half;
      const T* const sine = in[2].as<const T>() + *at * op.half;
      for (int64_t h = 0; h < op.heads; ++h) {
        const int64_t offset = b * length * op.heads * op.head + h * head_step + step * row_step;
        const T* const x = in[0].as<const T>() + offset;
        T* const y = out[0].as<T>() + offset;
        for (int64_t i = 0; i < op.half; ++i) {
          const int64_t first = op.interleaved ? 2 * i : i, second = op.interleaved ? 2 * i + 1 : i + op.half;
          const double a = widen(x[first]), c = widen(x[second]);
          y[first] = narrow<T>(widen(cosine[i]) * a - widen(sine[i]) * c);
          y[second] = narrow<T>(widen(sine[i]) * a + widen(cosine[i]) * c);
        }
        for (int64_t i = 2 * op.half; i < op.head; ++i) y[i] = x[i];
      }
    }
  }
  return kOk;
}

bool check(const GenericDesc& desc, const Rotary& op, std::string& why) {
  const Shape &x = desc.inputs[0].shape, &cosine = desc.inputs[1].shape, &sine = desc.inputs[2].shape;
  const int64_t length = op.flat ? x[1] : x[2];
  if (cosine != sine)
    why = "the caches have different shapes";
  else if (op.half < 1 || 2 * op.half > op.head)
    why = "rotates " + std::to_string(2 * op.half) + " of " + std::to_string(op.head) + " elements";
  else if (cosine.rank() < 2 || cosine.back() != op.half)
    why = "the caches have shape " + cosine.str();
  else if (!desc.has(3) && (cosine.rank() != 3 || cosine[0] != x[0] || cosine[1] != length))
    why = "the caches have shape " + cosine.str();
  else if (desc.has(3) && cosine.rank() != 2)
    why = "the caches have shape " + cosine.str();
  else if (desc.has(3) &&
           (desc.inputs[3].dtype != DType::kInt64 || (desc.inputs[3].shape.elements() != 1 && desc.inputs[3].shape != Shape{x[0], length})))
    why = "position_ids have shape " + desc.inputs[3].shape.str();
  else if (desc.inputs[1].dtype != desc.inputs[0].dtype || desc.inputs[2].dtype != desc.inputs[0].dtype)
    why = "inputs differ in dtype";
  return why.empty();
}

}  // namespace

Prepared rotary_embedding(const GenericDesc& desc, std::string& why) {
  const Shape& x = desc.inputs[0].shape;
  if (desc.inputs.size() < 3 || (x.rank() != 3 && x.rank() != 4)) return refuse(why, "x must have rank 3 or 4");
  const Shape& cosine = desc.inputs[1].shape;
  if (cosine.rank() < 2) return refuse(why, "the caches have shape " + cosine.str());
  const int64_t turned = desc.attributes.integer("rotary_embedding_dim", 0);
  Rotary op{.flat = x.rank() == 3,
            .interleaved = desc.attributes.integer("interleaved", 0) != 0,
            .heads = x[1],
            .head = x.back(),
            .half = turned > 0 ? turned / 2 : cosine.back()};
  if (op.flat) {
    op.heads = desc.attributes.integer("num_heads", 0);
    if (op.heads == 0 && op.half > 0) op.heads = x.back() / (2 * op.half);  // a head is turned whole then
    if (op.heads < 1 || x.back() % op.heads != 0)
      return refuse(why, std::to_string(op.heads) + " heads for rows of " + std::to_string(x.back()));
    op.head = x.back() / op.heads;
  }
  if (!check(desc, op, why)) return nullptr;
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run<T>(op, in, out); });
  });
}

}  // namespace serin::kernels::ref
