// stage_maker.cc: makes a stage in one walk over the nodes that are left, in topological order.
//
//   an operand is not there yet                  later
//   works on values (If, sequences, strings)     single
//   all sizes of its results follow              region
//   a size follows from elements that the        later: they will be known then
//     region computes
//   from elements that are there                 single, sized by contents
//   from nothing but the data (NonZero)          single, sized by its kernel
//
// While the rules of shape inference run, they ask for the elements of operands. Small elements that are present are given, and become
// facts of the stage. Elements that follow from shapes alone (sizes computed in floating point, for example) are computed. Positions (where
// a Slice starts) are never facts: a loop that walks over a tensor would make a stage for each turn.

#include "runtime/engine/interpret/stage.h"
#include "runtime/engine/interpret/strings.h"

#include <algorithm>
#include <map>
#include <optional>

namespace serin::engine {

namespace {

using graph::ConstantPtr;
using graph::kNone;
using graph::NodeId;
using graph::ValueId;

constexpr int kMaxFolding = 64;  // nodes in a chain of arithmetic on sizes

bool is_small(const graph::Constant& tensor) {
  return tensor.dtype != DType::kString && tensor.elements() <= static_cast<int64_t>(graph::kMaxShapeValues);
}

/// Operators whose result has the same size for many elements of these operands.
bool takes_positions(graph::Op op) { return op == graph::Op::kSlice; }

/// An operand that the kernel must know when it is prepared, though the result's shape does not depend on it.
std::optional<size_t> prepared_operand(graph::Op op) { return op == graph::Op::kCumSum ? std::optional<size_t>(1) : std::nullopt; }

class StageMaker final : public graph::ContentSource {
 public:
  StageMaker(StageContext& context, Stage& before, const std::vector<Value>& values, Contents known)
      : context_(context),
        work_(context.work),
        before_(before),
        values_(values),
        known_(known),
        where_(work_.value_capacity(), Where::kLater) {}

  Result<std::unique_ptr<Stage>> make() {
    find_done();
    place_values();
    context_.inference.set_source(this);
    context_.inference.forget_unknown();
    auto made = walk();
    context_.inference.set_source(nullptr);
    for (const ValueId id : folded_) work_.value(id).constant = nullptr;
    return made;
  }

  ConstantPtr contents(ValueId id) override {
    switch (where_[static_cast<size_t>(id)]) {
      case Where::kConstant: return work_.constant(id);
      case Where::kHere: return contents_here(id);
      case Where::kRegion:
        if (ConstantPtr computed = fold(id, 0)) return computed;
        break;
      case Where::kSingle:
      case Where::kLater: break;
    }
    missing_ = true;
    return nullptr;
  }

 private:
  enum class Where : uint8_t {
    kLater,
    kHere,    ///< made before this stage
    kRegion,  ///< made by its region: the shape is known
    kSingle,  ///< made by one of its singles: nothing is known, which does for operators on values and for strings
    kConstant,
  };

  void find_done() {
    done_.assign(work_.node_capacity(), false);
    for (const Stage* stage = &before_; stage; stage = stage->before) {
      for (const NodeId id : stage->nodes) done_[static_cast<size_t>(id)] = true;
    }
  }

  void place_values() {
    for (size_t i = 0; i < where_.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      graph::Value& value = work_.value(id);
      if (value.constant) {
        where_[i] = Where::kConstant;
      } else if (const Value& held = values_[i]; held.tensor) {
        where_[i] = Where::kHere;
        value.type = graph::Type::tensor(held.tensor->dtype, graph::dims_of(held.tensor->shape));
        context_.inference.forget(id);
      } else if (!held.is_tensor()) {
        where_[i] = Where::kHere;
        value.type = graph::Type{held.kind, held.dtype, std::nullopt};
      }
    }
  }

  ConstantPtr contents_here(ValueId id) {
    const Value& value = values_[static_cast<size_t>(id)];
    if (known_ == Contents::kUnknown || !value.tensor || !is_small(*value.tensor) || takes_positions(work_.node(at_).op)) {
      missing_ = true;
      return nullptr;
    }
    if (std::ranges::find(before_.asked, id) == before_.asked.end()) before_.asked.push_back(id);
    used_.insert_or_assign(id, value.tensor);
    return value.tensor;
  }

  /// The elements of what follows from shapes and constants alone.
  ConstantPtr fold(ValueId id, int depth) {
    if (const ConstantPtr known = work_.constant(id)) return known;
    if (const auto asked = used_.find(id); asked != used_.end()) return asked->second;
    const graph::Value& value = work_.value(id);
    if (const auto& elements = context_.inference.values()[static_cast<size_t>(id)]) {
      if (ConstantPtr numbers = graph::constant_of(value.type, *elements)) return numbers;
    }
    if (where_[static_cast<size_t>(id)] != Where::kRegion || depth > kMaxFolding) return nullptr;
    const graph::Node& node = work_.node(value.producer);
    const auto shape = value.type.shape ? graph::known_shape(*value.type.shape) : std::nullopt;
    if (!shape || shape->elements() > static_cast<int64_t>(graph::kMaxShapeValues) || node.outputs.size() != 1) return nullptr;
    const bool needs_operands = node.op != graph::Op::kShape && node.op != graph::Op::kSize;
    for (size_t i = 0; needs_operands && i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input == kNone) continue;
      ConstantPtr operand = fold(input, depth + 1);
      if (!operand || !is_small(*operand)) return nullptr;
      remember(input, std::move(operand));
    }
    auto results = context_.plan.folder.evaluate(work_, value.producer);
    if (!results) return nullptr;
    remember(id, (*results)[0]);
    return (*results)[0];
  }

  void remember(ValueId id, ConstantPtr constant) {
    if (work_.constant(id)) return;
    work_.value(id).constant = std::move(constant);
    folded_.push_back(id);
  }

  Result<std::unique_ptr<Stage>> walk() {
    stage_ = std::make_unique<Stage>();
    stage_->before = &before_;
    bool more = false;
    for (const NodeId id : context_.block.order) {
      if (done_[static_cast<size_t>(id)]) continue;
      if (operands_are_there(id)) {
        SERIN_TRY(const bool taken, take(id));
        if (taken) {
          stage_->nodes.push_back(id);
          done_[static_cast<size_t>(id)] = true;
          continue;
        }
      }
      more = true;
    }
    stage_->last = !more;
    if (more && stage_->nodes.empty()) return Error{Code::kInternal, "no node of the model can be run next"};
    if (!region_.empty()) {
      SERIN_TRY(stage_->region, make_region(work_, region_, used_, context_.plan));
    }
    find_dead();
    return std::move(stage_);
  }

  bool operands_are_there(NodeId id) const {
    const bool any_will_do = needs_no_shapes(work_.node(id));
    return std::ranges::all_of(work_.node(id).inputs, [&](ValueId input) {
      const Where where = input == kNone ? Where::kHere : where_[static_cast<size_t>(input)];
      return where != Where::kLater && (where != Where::kSingle || any_will_do);
    });
  }

  bool needs_no_shapes(const graph::Node& node) const {
    return works_on_values(work_, node) || (moves_strings(node.op) && touches_strings(node));
  }

  bool reads(NodeId id, Where where) const {
    return std::ranges::any_of(work_.node(id).inputs,
                               [&](ValueId input) { return input != kNone && where_[static_cast<size_t>(input)] == where; });
  }

  bool touches_strings(const graph::Node& node) const {
    const auto is_string = [&](ValueId id) { return id != kNone && work_.value(id).type.dtype == DType::kString; };
    return std::ranges::any_of(node.inputs, is_string) || std::ranges::any_of(node.outputs, is_string);
  }

  /// Whether every result is a tensor of a type and size that are known.
  bool is_sized(const graph::Node& node) const {
    return std::ranges::all_of(node.outputs, [&](ValueId id) {
      if (id == kNone) return true;
      const graph::Type& type = work_.value(id).type;
      return type.kind == graph::ValueKind::kTensor && type.dtype != DType::kUndefined && type.shape && graph::known_shape(*type.shape);
    });
  }

  /// What is made from numbers alone is a constant of a plan, unless it is a large one.
  bool is_too_large_to_fold(const graph::Node& node) const {
    if (node.op != graph::Op::kConstantOfShape && node.op != graph::Op::kRange) return false;
    const graph::Type& type = work_.value(node.outputs[0]).type;
    return graph::known_shape(*type.shape)->elements() >
           static_cast<int64_t>(Folder::kMaxBytes / std::max<size_t>(dtype_size(type.dtype), 1));
  }

  /// Whether the node runs in this stage, and how.
  Result<bool> take(NodeId id) {
    at_ = id;
    missing_ = false;
    const graph::Node& node = work_.node(id);
    if (works_on_values(work_, node)) return single(id, Single::Kind::kValues);
    if (needs_no_shapes(node)) return single(id, Single::Kind::kStrings);
    SERIN_CHECK(context_.inference.infer(id));
    if (const auto operand = prepared_operand(node.op); operand && work_.input(id, *operand) != kNone) contents(node.inputs[*operand]);
    const bool sized = is_sized(node) && !(missing_ && prepared_operand(node.op));
    if (touches_strings(node)) {
      if (!sized && missing_ && reads(id, Where::kRegion)) return false;
      return single(id, Single::Kind::kStrings);
    }
    if (sized && is_too_large_to_fold(node)) return single(id, Single::Kind::kContents);
    if (sized) {
      for (const ValueId output : node.outputs) {
        if (output != kNone) where_[static_cast<size_t>(output)] = Where::kRegion;
      }
      region_.push_back(id);
      return true;
    }
    if (missing_ && reads(id, Where::kRegion)) return false;
    return single(id, missing_ ? Single::Kind::kContents : Single::Kind::kKernel);
  }

  Result<bool> single(NodeId id, Single::Kind kind) {
    Single made{id, kind, nullptr};
    const graph::Node& node = work_.node(id);
    if (kind == Single::Kind::kKernel) {
      auto solo =
          Solo::make(work_, node, {context_.plan.backend, context_.plan.weights, context_.plan.threads, context_.plan.max_arena_bytes});
      if (!solo) return solo.error().in("node '" + node.name + "' (" + std::string(graph::op_name(node.op)) + ")");
      made.solo = std::make_unique<Solo>(std::move(*solo));
    }
    for (const ValueId output : node.outputs) {
      if (output == kNone) continue;
      stage_->shaped.push_back(output);
      where_[static_cast<size_t>(output)] = Where::kSingle;
    }
    stage_->singles.push_back(std::move(made));
    return true;
  }

  /// Values that are there after this stage and that no node that is left reads.
  void find_dead() {
    const auto needed = [&](ValueId id) {
      if (work_.is_output(id)) return true;
      const auto readers = work_.readers(id);
      return std::ranges::any_of(readers, [&](NodeId reader) { return !done_[static_cast<size_t>(reader)]; });
    };
    for (size_t i = 0; i < where_.size(); ++i) {
      if (where_[i] == Where::kHere && !needed(static_cast<ValueId>(i))) stage_->dead.push_back(static_cast<ValueId>(i));
    }
    if (stage_->region) {
      for (const ValueId id : stage_->region->outputs) {
        if (!needed(id)) stage_->dead.push_back(id);
      }
    }
    const auto died = [&](ValueId id) {
      if (needed(id)) return false;
      stage_->dead.push_back(id);
      return true;
    };
    std::erase_if(stage_->shaped, died);  // what nobody reads decides nothing
  }

  StageContext& context_;
  graph::Graph& work_;
  Stage& before_;
  const std::vector<Value>& values_;
  Contents known_;
  std::vector<Where> where_;  // by value
  std::vector<bool> done_;    // by node
  std::unique_ptr<Stage> stage_;
  std::vector<NodeId> region_;
  std::map<ValueId, ConstantPtr> used_;  // elements of values of the run that this stage depends on
  std::vector<ValueId> folded_;          // constants of `work_` that are only this stage's
  NodeId at_ = kNone;                    // the node being inferred
  bool missing_ = false;                 // its rule asked for elements that could not be given
};

}  // namespace

Result<std::unique_ptr<Stage>> make_stage(StageContext& context, Stage& before, const std::vector<Value>& values, Contents contents) {
  return StageMaker(context, before, values, contents).make();
}

}  // namespace serin::engine
