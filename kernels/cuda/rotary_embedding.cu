// rotary_embedding.cu: RotaryEmbedding: pairs of elements of each head, turned by an angle that depends on the position; a thread for each pair, and one for
// each element that stays. kernels/ref/rotary_embedding.cc says which operands there are.

#include "kernels/cuda/index.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

struct Rotary {
  int64_t heads = 0, head = 0, half = 0, length = 0, elements = 0, threads = 0,
          positions = 0;  ///< positions: rows of the caches, where ids choose among them
  int64_t head_step = 0, row_step = 0;
  bool interleaved = false, one_id = false;
  Division per_head, of_heads, of_length;  ///< threads of a head; heads; steps
};

/// The heads of each step of each sample in turn; `ids` may be null: a row of the caches for each step.
template <class T>
__global__ void turn_pairs(Rotary op, const T* x, const T* cosines, const T* sines, const int64_t* ids, T* y, IndexFaults faults) {
  for (int64_t i = first_element(); i < op.threads; i += element_step()) {
    const int64_t line = op.per_head.quotient(i), pair = i - line * op.per_head.d;
    const int64_t token = op.of_heads.quotient(line), head = line - token * op.heads, batch = op.of_length.quotient(token),
                  step = token - batch * op.length;
    const int64_t at = batch * op.length * op.heads * op.head + head * op.head_step + step * op.row_step;
    if (pair >= op.half) {
      const int64_t stays = at + op.half + pair;
      y[stays] = x[stays];
      continue;
    }
    int64_t row = token;
    if (ids) {
      const int64_t position = op.one_id ? ids[0] + step : ids[token];
      if (position < 0 || position >= op.positions) faults.report(position, 0);
      row = position < 0 || position >= op.positions ? 0 : position;
    }
    const int64_t first = at + (op.interleaved ? 2 * pair : pair), second = op.interleaved ? first + 1 : first + op.half;
    const auto a = load(x[first]), b = load(x[second]), cosine = load(cosines[row * op.half + pair]),
               sine = load(sines[row * op.half + pair]);
    y[first] = cast<T>(cosine * a - sine * b);
    y[second] = cast<T>(sine * a + cosine * b);
  }
}

}  // namespace

Prepared prepare_rotary_embedding(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const Shape& x = desc.inputs[0].shape;
  if (desc.inputs.size() < 3 || (x.rank() != 3 && x.rank() != 4) || desc.inputs[1].shape.rank() < 2)
    return refuse(why, "operands have other ranks");
  const Shape &cosine = desc.inputs[1].shape, &sine = desc.inputs[2].shape;
  const bool flat = x.rank() == 3, ids = has_operand(desc, 3);
  const int64_t turned = attributes.integer("rotary_embedding_dim", 0);
  Rotary op;
  op.half = turned > 0 ? turned / 2 : cosine.back();
  op.heads = flat ? attributes.integer("num_heads", 0) : x[1];
  if (flat && op.heads == 0 && op.half > 0) op.heads = x.back() / (2 * op.half);  // a head is turned whole then
  if (op.heads < 1 || (flat && x.back() % op.heads != 0)) return refuse(why, "heads do not fit the rows");
  op.head = flat ? x.back() / op.heads : x.back();
  op.length = flat ? x[1] : x[2];
  op.interleaved = attributes.integer("interleaved", 0) != 0;
  op.head_step = flat ? op.head : op.length * op.head, op.row_step = flat ? op.heads * op.head : op.head;
  op.positions = cosine[0];
  if (cosine != sine || op.half < 1 || 2 * op.half > op.head || cosine.back() != op.half)
    return refuse(why, "the caches do not fit the heads");
  const bool fits = ids ? cosine.rank() == 2 : cosine.rank() == 3 && cosine[0] == x[0] && cosine[1] == op.length;
  if (!fits) return refuse(why, "the caches do not fit the positions");
  if (ids) {
    op.one_id = desc.inputs[3].shape.elements() == 1;
    if (desc.inputs[3].dtype != DType::kInt64 || (!op.one_id && desc.inputs[3].shape != Shape{x[0], op.length}))
      return refuse(why, "position_ids do not fit");
  }
  if (desc.inputs[1].dtype != desc.inputs[0].dtype || desc.inputs[2].dtype != desc.inputs[0].dtype)
    return refuse(why, "operands differ in dtype");
  const int64_t per_head = op.head - op.half;
  op.threads = x[0] * op.length * op.heads * per_head;
  op.per_head = Division(per_head, op.threads), op.of_heads = Division(op.heads, op.threads),
  op.of_length = Division(op.length, op.threads);
  return ref::for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_indexed(Shape{op.positions}, make_kernel([op, ids](Stream& stream, Inputs in, Outputs out) -> Fault {
                          return launch(stream, {blocks_for(op.threads, kBlockThreads), kBlockThreads}, turn_pairs<T>, op,
                                        in[0].as<const T>(), in[1].as<const T>(), in[2].as<const T>(),
                                        ids ? in[3].as<const int64_t>() : nullptr, out[0].as<T>(), IndexFaults(stream));
                        }));
  });
}

}  // namespace serin::kernels::cuda
