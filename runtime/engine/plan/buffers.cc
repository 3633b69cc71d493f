// buffers.cc: finds the last use of every root tensor in one walk over the steps, and reuses memory in place in a second one.

#include "runtime/engine/plan/buffers.h"

#include <algorithm>
#include <numeric>
#include <variant>

namespace serin::engine {

namespace {

class Assignment {
 public:
  explicit Assignment(const Program& program)
      : program_(program), owner_(program.tensors.size()), first_(program.tensors.size(), kNever), last_(program.tensors.size(), kNever) {
    std::iota(owner_.begin(), owner_.end(), TensorId{0});
  }

  Buffers run() {
    mark_external();
    find_lifetimes();
    for (size_t i = 0; i < program_.steps.size(); ++i) hand_on(program_.steps[i], static_cast<int>(i));
    return collect();
  }

 private:
  static constexpr int kNever = -1;
  static size_t at(TensorId id) { return static_cast<size_t>(id); }

  TensorId root(TensorId id) const { return program_.root(id).first; }
  /// The root whose memory `root` uses after in-place decisions.
  TensorId owner(TensorId root) const {
    while (owner_[at(root)] != root) root = owner_[at(root)];
    return root;
  }

  void mark_external() {
    external_.assign(program_.tensors.size(), Place{});
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      if (program_.tensors[i].constant) external_[i] = {Place::In::kConstant, static_cast<int>(i), 0};
    }
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      Place& place = external_[at(program_.inputs[i])];
      if (place.in == Place::In::kNowhere) place = {Place::In::kInput, static_cast<int>(i), 0};
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      external_[at(root(program_.outputs[i]))] = {Place::In::kOutput, static_cast<int>(i), 0};
    }
  }

  void find_lifetimes() {
    const auto use = [&](TensorId id, int step) {
      const size_t r = at(root(id));
      if (first_[r] == kNever) first_[r] = step;
      last_[r] = step;
    };
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      for (const TensorId id : program_.steps[i].inputs) {
        if (id != kNoTensor) use(id, static_cast<int>(i));
      }
      for (const TensorId id : program_.steps[i].outputs) use(id, static_cast<int>(i));
    }
    // Callers may write an input there before a run, and read an output there after it.
    for (const auto& [callers, copy] : program_.staged) first_[at(copy)] = 0, last_[at(copy)] = static_cast<int>(program_.steps.size()) - 1;
  }

  /// Kernels that read element i of an operand of the result's shape before they write element i, and no other element after that.
  static bool works_in_place(const Step& step) {
    return step.bodies.empty() &&
           (std::holds_alternative<kernels::Unary>(step.kernel) || std::holds_alternative<kernels::Binary>(step.kernel) ||
            std::holds_alternative<kernels::Pointwise>(step.kernel));
  }

  bool may_take(const Step& step, TensorId input, TensorId output, int now) const {
    const Tensor& x = program_.tensor(input);
    const Tensor& y = program_.tensor(output);
    const TensorId from = root(input);
    if (x.storage != Storage::kFixed || y.storage != Storage::kFixed || x.shape != y.shape || dtype_size(x.dtype) != dtype_size(y.dtype))
      return false;
    if (external_[at(owner(from))].in != Place::In::kNowhere || external_[at(from)].in != Place::In::kNowhere) return false;
    if (last_[at(owner(from))] != now) return false;
    if (program_.root(input).second != 0 || program_.tensor(owner(from)).bytes() != y.bytes() ||
        program_.tensor(root(output)).bytes() != y.bytes())
      return false;
    // Another operand that shows the same memory must show it the same way.
    return std::all_of(step.inputs.begin(), step.inputs.end(), [&](TensorId other) {
      return owner(root(other)) != owner(from) || (program_.root(other).second == 0 && program_.tensor(other).shape == x.shape);
    });
  }

  void hand_on(const Step& step, int now) {
    if (!works_in_place(step)) return;
    const TensorId output = step.outputs[0], to = root(output);
    if (first_[at(to)] != now) return;  // already holds something (a part written before)
    for (const TensorId input : step.inputs) {
      if (!may_take(step, input, output, now)) continue;
      // The result's root owns both, because it may be the caller's memory.
      const TensorId from = owner(root(input));
      owner_[at(from)] = to;
      first_[at(to)] = first_[at(from)];
      return;
    }
  }

  Buffers collect() {
    Buffers buffers;
    buffers.places.resize(program_.tensors.size());
    std::vector<int> buffer_of(program_.tensors.size(), kNever);
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      const auto [own_root, offset] = program_.root(static_cast<TensorId>(i));
      const TensorId holder = owner(own_root);
      Place place = external_[at(holder)];
      if (place.in == Place::In::kNowhere && first_[at(holder)] != kNever) {
        int& buffer = buffer_of[at(holder)];
        if (buffer == kNever) {
          buffer = static_cast<int>(buffers.intervals.size());
          buffers.intervals.push_back({program_.tensor(holder).bytes(), first_[at(holder)], last_[at(holder)]});
          buffers.memories.push_back(program_.tensor(holder).memory);
        }
        place = {Place::In::kArena, buffer, 0};
      }
      place.offset = offset;
      buffers.places[i] = place;
    }
    return buffers;
  }

  const Program& program_;
  std::vector<TensorId> owner_;    // by root: the root whose memory it uses
  std::vector<int> first_, last_;  // by root: steps
  std::vector<Place> external_;    // by root: memory that is not in the arena
};

}  // namespace

Buffers assign_buffers(const Program& program) { return Assignment(program).run(); }

}  // namespace serin::engine
