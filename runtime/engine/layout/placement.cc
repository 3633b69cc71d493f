// placement.cc: adds the copies between host and device, in one walk over the steps. Operands in the other memory are copied before a step,
// results for the other memory after it.
//
// A root tensor lies on the device if every step that writes it runs there and the caller does not own it. A mirror is a range of bytes of a root, copied to
// the other memory; it is looked up by root, offset and length, because a view has the bytes of its root and often several shapes.

#include "runtime/engine/layout/placement.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "kernels/indexing.h"

namespace serin::engine {

namespace {

size_t at(TensorId id) { return static_cast<size_t>(id); }

/// Whether the data decides the same of both.
bool is_sized_like(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.bounded, b.bounded, [](const BoundedDim& x, const BoundedDim& y) {
    return x.axis == y.axis && x.fixed == y.fixed && x.terms == y.terms;
  });
}

class Placer {
 public:
  Placer(Program& program, const std::vector<bool>& on_device)
      : program_(program), on_device_(on_device), decided_(program.symbols.size(), false) {}

  std::vector<int> run() {
    find_memories();
    std::vector<Step> steps = std::exchange(program_.steps, {});
    for (size_t i = 0; i < steps.size(); ++i) {
      const Memory memory = on_device_[i] ? Memory::kDevice : Memory::kHost;
      for (TensorId& id : steps[i].inputs) {
        if (id != kNoTensor) id = in_memory(id, memory);
      }
      if (memory == Memory::kHost) {
        for (const TensorId id : steps[i].outputs) settle(program_.root(id).first);
      }
      const bool decides_sizes = decide(steps[i]);
      std::vector<std::pair<TensorId, TensorId>> copies;  // results that are wanted in the other memory: from, to
      for (TensorId& id : steps[i].outputs) {
        if (program_.tensor(id).memory == memory) continue;
        const TensorId own = mirror_of(id, memory);
        copies.emplace_back(own, id);
        id = own;
      }
      if (decides_sizes && on_device_[i]) {
        const Shape each{static_cast<int64_t>(steps[i].outputs.size())};
        steps[i].outputs.push_back(new_tensor({.name = steps[i].node + " sizes", .dtype = DType::kInt64, .shape = each, .memory = memory}));
        copies.insert(copies.begin(), {steps[i].outputs.back(), new_root(steps[i].outputs.back(), Memory::kHost)});
      }
      add(std::move(steps[i]), static_cast<int>(i));
      for (const auto& [from, to] : copies) leave(from, to);
    }
    while (!late_.empty()) settle(program_.root(late_.front().outputs[0]).first);
    program_.steps.insert(program_.steps.begin(), std::make_move_iterator(early_.begin()), std::make_move_iterator(early_.end()));
    origin_.insert(origin_.begin(), early_.size(), -1);
    return std::move(origin_);
  }

 private:
  using Range = std::tuple<TensorId, size_t, size_t>;  // root, first byte, bytes

  void find_memories() {
    std::vector<bool> by_device(program_.tensors.size(), false), by_host(program_.tensors.size(), false);
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      for (const TensorId id : program_.steps[i].outputs) (on_device_[i] ? by_device : by_host)[at(program_.root(id).first)] = true;
    }
    callers_.assign(program_.tensors.size(), false);
    for (const TensorId id : program_.inputs) callers_[at(program_.root(id).first)] = true;
    is_input_ = callers_;
    for (const TensorId id : program_.outputs) callers_[at(program_.root(id).first)] = true;
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      const size_t root = at(program_.root(static_cast<TensorId>(i)).first);
      const bool on_device = by_device[root] && !by_host[root] && !callers_[root] && !program_.tensors[root].constant;
      program_.tensors[i].memory = on_device ? Memory::kDevice : Memory::kHost;
    }
  }

  /// Whether a size is first known when the step has run (Plan::number_symbols).
  bool decide(const Step& step) {
    bool decides = false;
    for (const TensorId id : step.outputs) {
      for (const BoundedDim& dim : program_.tensor(id).bounded) {
        for (const auto& [symbol, factor] : dim.terms) {
          decides = decides || !decided_[at(symbol)];
          decided_[at(symbol)] = true;
        }
      }
    }
    return decides;
  }

  void add(Step step, int origin) {
    program_.steps.push_back(std::move(step));
    origin_.push_back(origin);
  }

  TensorId new_tensor(Tensor tensor) {
    program_.tensors.push_back(std::move(tensor));
    callers_.push_back(false);
    is_input_.push_back(false);
    return static_cast<TensorId>(program_.tensors.size()) - 1;
  }
  /// A tensor of its own with the type and shape of `id`.
  TensorId new_root(TensorId id, Memory memory) {
    const Tensor& like = program_.tensor(id);
    return new_tensor(
        {.name = like.name, .dtype = like.dtype, .shape = like.shape, .storage = like.storage, .bounded = like.bounded, .memory = memory});
  }

  /// The same bytes as `id` in `memory`, without a step that fills them.
  TensorId mirror_of(TensorId id, Memory memory) {
    const auto [root, offset] = program_.root(id);
    const auto [found, is_new] = mirrors_.try_emplace(Range{root, offset, program_.tensor(id).bytes()}, kNoTensor);
    if (is_new) found->second = new_root(id, memory);
    const TensorId mirror = found->second;
    const Tensor &like = program_.tensor(id), &there = program_.tensor(mirror);
    if (there.shape == like.shape && there.dtype == like.dtype && is_sized_like(there, like)) return mirror;
    return new_tensor({.name = like.name,
                       .dtype = like.dtype,
                       .shape = like.shape,
                       .storage = like.storage,
                       .bounded = like.bounded,
                       .base = mirror,
                       .memory = memory});
  }

  /// `id` where a step of `memory` can read it.
  TensorId in_memory(TensorId id, Memory memory) {
    const auto [root, offset] = program_.root(id);
    if (program_.tensor(root).memory == memory) {
      settle(root);
      return id;
    }
    const bool copied = mirrors_.contains({root, offset, program_.tensor(id).bytes()});
    if (program_.tensor(root).constant) return copied ? mirror_of(id, memory) : constant_of(id, root, offset, memory);
    const TensorId mirror = mirror_of(id, memory);
    if (!copied) fetch(id, program_.root(mirror).first, memory);
    return mirror;
  }

  /// The whole constant, of which `id` may be a part.
  TensorId constant_of(TensorId id, TensorId root, size_t offset, Memory memory) {
    const auto [found, is_new] = constants_.try_emplace(root, kNoTensor);
    if (is_new) {
      Tensor own = program_.tensor(root);
      own.memory = memory;
      found->second = new_tensor(std::move(own));
    }
    if (id == root) return found->second;
    const Tensor& like = program_.tensor(id);
    return new_tensor(
        {.name = like.name, .dtype = like.dtype, .shape = like.shape, .base = found->second, .offset = offset, .memory = memory});
  }

  void transfer(TensorId from, TensorId to, Memory memory) {
    add({.node = program_.tensor(from).name,
         .op = graph::Op::kIdentity,
         .kernel = kernels::Transfer{memory == Memory::kDevice},
         .inputs = {from},
         .outputs = {to}},
        -1);
  }
  /// A strided copy is no kernel that works in place, so the two stay apart. Nor is a Concat of one, which needs no strides: those of a run are not known here.
  Step copy_on_host(TensorId from, TensorId to) const {
    const Shape& shape = program_.tensor(from).shape;
    const kernels::Strides strides = kernels::row_major_strides(shape);
    kernels::Op copy = kernels::StridedCopy{0, {strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(shape.rank())}};
    if (program_.tensor(from).storage != Storage::kFixed) copy = kernels::Concat{0};
    return {.node = program_.tensor(from).name, .op = graph::Op::kIdentity, .kernel = std::move(copy), .inputs = {from}, .outputs = {to}};
  }

  /// `copy` has all of the caller's tensor that `id` shows, and so may stand for it.
  void note_staged(TensorId id, TensorId copy) {
    const auto [root, offset] = program_.root(id);
    const bool whole = offset == 0 && program_.tensor(id).bytes() == program_.tensor(root).bytes() &&
                       program_.tensor(root).storage == Storage::kFixed && program_.tensor(id).storage == Storage::kFixed;
    const bool known = std::ranges::any_of(program_.staged, [root](const auto& pair) { return pair.first == root; });
    if (whole && !known) program_.staged.emplace_back(root, copy);
  }

  /// From here on the caller's tensor is read or written by the host: what is still to be copied there is copied now.
  void settle(TensorId root) {
    const auto is_meant = [&](const Step& copy) { return program_.root(copy.outputs[0]).first == root; };
    for (Step& copy : late_) {
      if (is_meant(copy)) add(copy, -1);
    }
    std::erase_if(late_, is_meant);
  }

  void fetch(TensorId id, TensorId to, Memory memory) {
    TensorId from = id;
    if (const TensorId root = program_.root(id).first; memory == Memory::kDevice && callers_[at(root)]) {
      settle(root);
      from = new_root(id, Memory::kHost);
      Step copy = copy_on_host(id, from);
      if (is_input_[at(root)]) {
        note_staged(id, from);
        early_.push_back(std::move(copy));
      } else {
        add(std::move(copy), -1);
      }
    }
    transfer(from, to, memory);
  }

  /// A step wrote `from` in its own memory; `to` lies in the other.
  void leave(TensorId from, TensorId to) {
    const Memory memory = program_.tensor(to).memory;
    if (memory == Memory::kDevice || !callers_[at(program_.root(to).first)]) return transfer(from, to, memory);
    const TensorId staged = new_root(to, Memory::kHost);
    transfer(from, staged, memory);
    late_.push_back(copy_on_host(staged, to));
    note_staged(to, staged);
  }

  Program& program_;
  const std::vector<bool>& on_device_;
  std::vector<bool> decided_;  // by symbol
  std::vector<int> origin_;
  std::vector<bool> callers_, is_input_;    // by tensor: a root whose memory is the caller's; an input's
  std::vector<Step> early_, late_;          // copies of inputs, before all else; of outputs, when all is done or the host wants them
  std::map<Range, TensorId> mirrors_;       // of ranges of roots, in the memory that the root is not in
  std::map<TensorId, TensorId> constants_;  // by root
};

}  // namespace

void keep_islands_on_host(const Program& program, std::vector<bool>& on_device) {
  std::vector<std::vector<size_t>> readers(program.tensors.size()), writers(program.tensors.size());
  std::vector<bool> is_input(program.tensors.size(), false);
  for (const TensorId id : program.inputs) is_input[at(program.root(id).first)] = true;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    for (const TensorId id : program.steps[i].inputs) {
      if (id != kNoTensor) readers[at(program.root(id).first)].push_back(i);
    }
    for (const TensorId id : program.steps[i].outputs) writers[at(program.root(id).first)].push_back(i);
  }
  const auto all_host = [&](const std::vector<size_t>& steps) {
    return std::ranges::none_of(steps, [&](size_t i) { return on_device[i]; });
  };
  const auto made_by_host = [&](TensorId id) {
    if (id == kNoTensor) return true;
    const size_t root = at(program.root(id).first);
    return program.tensors[root].constant || (!is_input[root] && all_host(writers[root]));
  };
  const auto read_by_host = [&](TensorId id) {
    const auto& steps = readers[at(program.root(id).first)];
    return !steps.empty() && all_host(steps);
  };
  for (bool changed = true; std::exchange(changed, false);) {
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      if (!on_device[i] || !std::ranges::all_of(step.inputs, made_by_host) || !std::ranges::all_of(step.outputs, read_by_host)) continue;
      on_device[i] = false;
      changed = true;
    }
  }
}

std::vector<int> place(Program& program, const std::vector<bool>& on_device) { return Placer(program, on_device).run(); }

}  // namespace serin::engine
