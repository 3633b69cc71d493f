// program.cc: running a list of primitives without allocating.
//
// A dnnl::memory is a handle whose pointer is set before each run, so it cannot be shared by two runs at once. Each kernel keeps a stock of frames
// (all memories and argument lists of its steps); a run borrows one and gives it back. There are as many as runs ever overlapped.

#include "kernels/onednn/program.h"

#include <algorithm>

#include "kernels/mutex.h"

namespace serin::kernels::onednn {

namespace {

using dnnl::memory;

class ProgramKernel final : public Kernel {
 public:
  explicit ProgramKernel(Program::Parts parts) : parts_(std::move(parts)) { give_back(std::make_unique<Frame>(parts_)); }

  std::string_view name() const override { return parts_.name; }
  size_t scratch_bytes() const override { return parts_.scratch_bytes; }
  uint32_t packed_inputs() const override { return parts_.packed_inputs; }

  Fault run(Stream& stream, std::span<const TensorView> inputs, std::span<TensorView> outputs) const override {
    std::unique_ptr<Frame> frame = borrow();
    Fault fault;
    for (size_t i = 0; i < parts_.steps.size() && !fault; ++i) {
      const Program::Step& step = parts_.steps[i];
      std::vector<dnnl_exec_arg_t>& arguments = frame->arguments[i];
      for (size_t k = 0; k < arguments.size(); ++k) {
        dnnl_memory_set_data_handle(arguments[k].memory, address(step.arguments[k].place, stream, inputs, outputs));
      }
      const dnnl_status_t status =
          dnnl_primitive_execute(step.primitive.get(), frame->stream.get(), static_cast<int>(arguments.size()), arguments.data());
      if (status != dnnl_success) fault = parts_.name + " failed with oneDNN status " + std::to_string(status);
    }
    give_back(std::move(frame));
    if (parts_.activation && !fault) {
      float* y = outputs[0].as<float>();
      parts_.activation(y, y, outputs[0].elements(), parts_.epilogue.alpha, parts_.epilogue.beta);
    }
    return fault;
  }

 private:
  struct Frame {
    explicit Frame(const Program::Parts& parts) : stream(parts.engine) {
      for (const Program::Step& step : parts.steps) {
        std::vector<dnnl_exec_arg_t>& list = arguments.emplace_back();
        for (const Argument& argument : step.arguments) {
          memories.emplace_back(argument.desc, parts.engine, nullptr);
          list.push_back({argument.id, memories.back().get()});
        }
      }
    }
    dnnl::stream stream;
    std::vector<memory> memories;
    std::vector<std::vector<dnnl_exec_arg_t>> arguments;  // of each step
  };

  static void* address(const Place& place, Stream& stream, std::span<const TensorView> inputs, std::span<TensorView> outputs) {
    switch (place.kind) {
      case Place::Kind::kInput: return inputs[place.at].data;
      case Place::Kind::kOutput: return outputs[place.at].data;
      case Place::Kind::kScratch: return stream.scratch + place.at;
      case Place::Kind::kPacked: return place.packed->data;
    }
    return nullptr;
  }

  std::unique_ptr<Frame> borrow() const {
    {
      const MutexLock lock(mutex_);
      if (!frames_.empty()) {
        std::unique_ptr<Frame> frame = std::move(frames_.back());
        frames_.pop_back();
        return frame;
      }
    }
    return std::make_unique<Frame>(parts_);
  }

  void give_back(std::unique_ptr<Frame> frame) const {
    const MutexLock lock(mutex_);
    frames_.push_back(std::move(frame));
  }

  const Program::Parts parts_;
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<Frame>> frames_ SERIN_GUARDED_BY(mutex_);
};

/// The exact layout as text: the key under which packed weights are shared. Empty where oneDNN does not tell (an opaque format).
std::string layout_key(const memory::desc& desc) {
  if (desc.get_format_kind() != memory::format_kind::blocked) return {};
  std::string key = "onednn";
  const auto append = [&key](char name, const memory::dims& values) {
    key += name;
    for (const auto value : values) key += std::to_string(value) + ',';
  };
  append('d', desc.get_dims());
  append('p', desc.get_padded_dims());
  append('s', desc.get_strides());
  append('b', desc.get_inner_blks());
  append('i', desc.get_inner_idxs());
  return key;
}

}  // namespace

Program::Program(const dnnl::engine& engine, const OpDesc& desc, PrepareContext& context) : desc_(desc), context_(context) {
  parts_.engine = engine;
}

Place Program::scratch(size_t bytes) {
  constexpr size_t kAlign = 64;
  const Place place{Place::Kind::kScratch, parts_.scratch_bytes, nullptr};
  parts_.scratch_bytes += (bytes + kAlign - 1) / kAlign * kAlign;
  return place;
}

void Program::reorder(const memory::desc& from, Place source, const memory::desc& to, Place target) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc pd(parts_.engine, from, parts_.engine, to, attributes);
  const memory::desc pad = pd.scratchpad_desc();
  parts_.steps.push_back({dnnl::reorder(pd),
                          {{DNNL_ARG_FROM, from, std::move(source)},
                           {DNNL_ARG_TO, to, std::move(target)},
                           {DNNL_ARG_SCRATCHPAD, pad, scratch(pad.get_size())}}});
}

Place Program::in_layout(size_t input, const memory::desc& plain, const memory::desc& wanted) {
  if (plain == wanted) return Place::input(input);
  const TensorDesc& operand = desc_.inputs[input];
  if (!operand.constant) {
    Place place = scratch(wanted.get_size());
    reorder(plain, Place::input(input), wanted, place);
    return place;
  }
  const std::string key = layout_key(wanted);
  auto packed = context_.weights->get(key.empty() ? 0 : operand.constant_id, key, wanted.get_size(), [&](std::byte* data) {
    memory from(plain, parts_.engine, const_cast<void*>(operand.constant.as<void>()));
    memory to(wanted, parts_.engine, data);
    dnnl::stream stream(parts_.engine);
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  });
  parts_.packed_inputs |= 1u << input;
  return {Place::Kind::kPacked, 0, std::move(packed)};
}

Place Program::result(const memory::desc& plain, const memory::desc& wanted) {
  return plain == wanted ? Place::output(0) : scratch(wanted.get_size());
}

void Program::store(const Place& result, const memory::desc& plain, const memory::desc& wanted) {
  if (plain != wanted) reorder(wanted, result, plain, Place::output(0));
}

void Program::main_step(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& pd, std::vector<Argument> arguments) {
  const memory::desc pad = pd.scratchpad_desc();
  arguments.push_back({DNNL_ARG_SCRATCHPAD, pad, scratch(pad.get_size())});
  parts_.steps.push_back({primitive, std::move(arguments)});
  parts_.name = std::string("onednn:") + pd.impl_info_str();
}

void Program::finish(cpu::UnaryLoop loop, const Epilogue& epilogue) {
  parts_.activation = loop;
  parts_.epilogue = epilogue;
}

std::unique_ptr<Kernel> Program::kernel() && { return std::make_unique<ProgramKernel>(std::move(parts_)); }

memory::desc plain_desc(const memory::dims& dims) {
  memory::dims strides(dims.size());
  memory::dim step = 1;
  for (size_t axis = dims.size(); axis-- > 0; step *= dims[axis]) strides[axis] = step;
  return {dims, memory::data_type::f32, strides};
}

bool append_activation(dnnl::post_ops& post_ops, const Epilogue& epilogue) {
  using dnnl::algorithm;
  const bool none = false;
  const auto append = [&post_ops](algorithm function, float a = 0.f, float b = 0.f) {
    post_ops.append_eltwise(function, a, b);
    return true;
  };
#define SERIN_UNARY(name, word, alpha, beta, follows, chain, finite, scalar, vector, onednn, cudnn) \
  if (epilogue.activation == UnaryFn::k##name) return onednn;
#include "kernels/functions.def"
  return none;
}

dnnl::primitive_attr make_attributes(const dnnl::post_ops& post_ops) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  attributes.set_post_ops(post_ops);
  return attributes;
}

bool is_fixed_f32(const OpDesc& desc, std::string& why) {
  const auto fits = [&why](const TensorDesc& tensor) {
    if (tensor.dtype != DType::kFloat32)
      why = "f32 only";
    else if (tensor.bounded)
      why = "the shape is known only at run time";
    else if (tensor.shape.elements() == 0)
      why = "an operand is empty";
    return why.empty();
  };
  return std::ranges::all_of(desc.inputs, fits) && std::ranges::all_of(desc.outputs, fits);
}

}  // namespace serin::kernels::onednn
