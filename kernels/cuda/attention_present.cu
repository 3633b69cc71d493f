// attention_present.cu: Attention that shows its present keys and values: those of the past and what is new, one behind the other. They are copied; the
// attention itself is another row's.

#include "kernels/cuda/attention_call.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

/// [batch, heads, rows, width] of the present, of which the first `past` rows are the past's.
struct Present {
  int64_t elements, past;
  Division width, rows, heads;
  HeadStrides from_past, from_now, to;

  Present(int64_t batch, int64_t heads_of, int64_t past_rows, int64_t total, int64_t row_width)
      : elements(batch * heads_of * total * row_width),
        past(past_rows),
        width(row_width, elements),
        rows(total, elements),
        heads(heads_of, elements) {}
};

template <class T>
__global__ void append_rows(Present p, const T* past, const T* now, T* present) {
  const auto place = [](const HeadStrides& at, int64_t b, int64_t h, int64_t row) { return b * at.b + h * at.h + row * at.r; };
  for (int64_t i = first_element(); i < p.elements; i += element_step()) {
    const int64_t line = p.width.quotient(i), head = p.rows.quotient(line), b = p.heads.quotient(head);
    const int64_t e = i - line * p.width.d, row = line - head * p.rows.d, h = head - b * p.heads.d;
    const T value = row < p.past ? past[place(p.from_past, b, h, row) + e] : now[place(p.from_now, b, h, row - p.past) + e];
    present[place(p.to, b, h, row) + e] = value;
  }
}

template <class T>
Fault run(const AttentionOp& op, const Stream& stream, Inputs in, Outputs out) {
  using Operands = AttentionOperands;
  const AttentionCall<T> call = attention_call<T>(op, in, out);
  const AttentionRun sizes(op, in);
  const auto append = [&](size_t output, int64_t width, const T* past, const T* now, const HeadStrides& past_at, const HeadStrides& now_at,
                          const HeadStrides& to) -> Fault {
    if (output >= out.size() || !out[output].data) return kOk;
    Present present(sizes.batch, op.kv_heads, sizes.past, sizes.total, width);
    present.from_past = past_at, present.from_now = now_at, present.to = to;
    return launch(stream, {blocks_for(present.elements, kBlockThreads), kBlockThreads}, append_rows<T>, present, past, now,
                  out[output].as<T>());
  };
  if (Fault fault = append(Operands::kPresentKey, op.head, call.past_k, call.k, sizes.past_k, sizes.k, sizes.present_k)) return fault;
  return append(Operands::kPresentValue, op.v_head, call.past_v, call.v, sizes.past_v, sizes.v, sizes.present_v);
}

}  // namespace

Prepared prepare_attention_present(const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto op = attention_of(std::get<Generic>(desc.op).attributes, desc.inputs, desc.outputs, why);
  if (!op) return nullptr;
  if (desc.outputs.size() < 2) return refuse(why, "it returns no present keys");
  if (desc.outputs.size() > 3) return refuse(why, "it returns scores");
  OpDesc plain = desc;
  plain.outputs.resize(1);
  Prepared attention = prepare_attention_tiles(plain, context, why);
  if (!attention) attention = prepare_attention(plain, context, why);
  if (!attention) return nullptr;
  return ref::for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    const KernelTraits traits{.scratch_bytes = attention->scratch_bytes()};
    return make_kernel(
        [op = *op, inner = std::shared_ptr<const Kernel>(std::move(attention))](Stream& stream, Inputs in, Outputs out) -> Fault {
          if (Fault fault = run<T>(op, stream, in, out)) return fault;
          return inner->run(stream, in, out.first(1));
        },
        traits);
  });
}

}  // namespace serin::kernels::cuda
