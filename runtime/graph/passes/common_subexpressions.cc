// common_subexpressions.cc
//
//   a = Add(x, b)                     a = Add(x, b)
//   c = Add(x, b)    y = Mul(a, c) -> y = Mul(a, a)
//
// Nodes that compute the same of the same are one: the first stands for all. Exporters write such nodes wherever a module computes its mask, its
// positions or its scale again. Operands are the same where they are one value, or small constants with the same elements. No operator has side
// effects; those that answer something else each time, and those with bodies, stay.

#include <map>
#include <span>
#include <string>

#include "runtime/graph/passes/passes.h"

namespace serin::graph {
namespace {

constexpr size_t kSmall = 4096;  // bytes of a constant that are looked at

bool is_random(Op op) {
  switch (op) {
    case Op::kBernoulli:
    case Op::kDropout:
    case Op::kMultinomial:
    case Op::kRandomNormal:
    case Op::kRandomNormalLike:
    case Op::kRandomUniform:
    case Op::kRandomUniformLike: return true;
    default: return false;
  }
}

/// Bytes that are equal where what was put in is; each part has its length before it or is of one.
class Key {
 public:
  template <class T>
  Key& number(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Key& bytes(std::string_view bytes) {
    number(bytes.size());
    text_.append(bytes);
    return *this;
  }
  template <class T>
  Key& numbers(const std::vector<T>& values) {
    return bytes({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_attribute(Key& key, const Attribute& attribute) {
  key.number(attribute.index());
  std::visit(
      [&key](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_arithmetic_v<T>) {
          key.number(held);
        } else if constexpr (std::is_same_v<T, std::string>) {
          key.bytes(held);
        } else if constexpr (std::is_same_v<T, ConstantPtr>) {
          key.number(held.get());
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          key.number(held.size());
          for (const std::string& text : held) key.bytes(text);
        } else {
          key.numbers(held);
        }
      },
      attribute);
}

class Subexpressions {
 public:
  explicit Subexpressions(Graph& graph) : graph_(graph) {}

  Result<bool> run() {
    SERIN_TRY(const auto order, graph_.topological_order());
    bool changed = false;
    for (const NodeId id : order) {
      if (is_random(graph_.node(id).op) || !graph_.node(id).bodies.empty()) continue;
      const auto [first, fresh] = seen_.try_emplace(key_of(graph_.node(id)), id);
      if (fresh) continue;
      const std::vector<ValueId> outputs = graph_.node(id).outputs;
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i] != kNone) graph_.replace_uses(outputs[i], graph_.output(first->second, i));
      }
      graph_.remove(id);
      changed = true;
    }
    return changed;
  }

 private:
  std::string key_of(const Node& node) {
    Key key;
    key.number(node.op).number(node.inputs.size());
    for (const ValueId input : node.inputs) key.number(same_as(input));
    key.number(node.outputs.size());
    for (const ValueId output : node.outputs) key.number(output == kNone);
    for (const auto& [name, attribute] : node.attributes) {
      key.bytes(name);
      add_attribute(key, attribute);
    }
    return key.take();
  }

  /// The first value that is known to be equal.
  ValueId same_as(ValueId id) {
    const ConstantPtr constant = graph_.constant(id);
    if (!constant || !constant->resident || constant->bytes() > kSmall) return id;
    Key key;
    key.number(constant->dtype).number(constant->shape.rank());
    for (const int64_t dim : constant->shape) key.number(dim);
    key.bytes({reinterpret_cast<const char*>(constant->resident.get()), constant->bytes()});
    return constants_.try_emplace(key.take(), id).first->second;
  }

  Graph& graph_;
  std::map<std::string, NodeId> seen_;
  std::map<std::string, ValueId> constants_;
};

}  // namespace

Result<bool> CommonSubexpressions::run(Graph& graph) const { return Subexpressions(graph).run(); }

}  // namespace serin::graph
