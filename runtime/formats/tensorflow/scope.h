// scope.h: one graph while it is made, and the values in it.
//
// TensorFlow keeps channels last, the canonical operators have them first. So a value may be known in two orders of its axes, and is
// converted only when an operator asks for the other one. A chain of convolutions, activations and sums needs no conversion at all.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/formats/tensorflow/proto.h"
#include "runtime/graph/builder.h"

namespace serin::formats::tf {

using graph::kNone;
using graph::ValueId;

/// A list of tensors of one shape, as a tensor: [count, shape of an item...].
struct TensorList {
  ValueId items = kNone;  ///< kNone: only reserved
  ValueId count = kNone;  ///< i64, rank 0
  // In the body of a loop: the item that this iteration has set, and its place.
  ValueId written = kNone, place = kNone;
};

struct Value;

/// An image that SpaceToBatchND took apart for a dilated convolution, and the convolution once it is known.
struct TakenApart {
  std::shared_ptr<Value> image;
  std::vector<int64_t> block, pads;  ///< of the spatial axes; pads: begins, then ends
  ValueId weight = kNone;            ///< set: this value is the convolution's result
  std::vector<int64_t> kernel;
  int64_t group = 1;
  bool line = false;  ///< of one spatial axis, to which another of size 1 was added in front
};

struct Value {
  ValueId plain = kNone;              ///< with the axes of the file
  ValueId first = kNone;              ///< the same with its last axis moved to place 1
  const NodeDef* resource = nullptr;  ///< a variable or a table: the node that makes its handle
  std::shared_ptr<TensorList> list;   ///< a list of tensors
  std::shared_ptr<const TakenApart> apart = nullptr;
  bool tensor() const { return plain != kNone || first != kNone; }
};
using ValuePtr = std::shared_ptr<Value>;

inline ValuePtr plain_value(ValueId id) {
  return std::make_shared<Value>(Value{.plain = id, .first = kNone, .resource = nullptr, .list = nullptr});
}

/// Texts that StringSplitV2 cut into words.
struct CutTexts {
  ValueId texts = kNone;         ///< [texts]
  graph::Attributes attributes;  ///< of Op::kStringSplit
  ValueId indices = kNone;       ///< text and place of each word: [words, 2]
  ValueId words = kNone;         ///< one after the other
  ValueId sizes = kNone;         ///< the number of texts, the most words of one
};

/// The place of an axis of the file in the order with channels first.
inline int64_t place_in_first(int64_t axis, size_t rank) {
  if (axis == 0) return 0;
  return axis == static_cast<int64_t>(rank) - 1 ? 1 : axis + 1;
}

class Scope {
 public:
  Scope() : builder_(graph_) {}

  graph::Graph& graph() { return graph_; }
  graph::Builder& builder() { return builder_; }

  ValueId plain(Value& value);
  /// Requires a known rank of at least 3.
  ValueId first(Value& value);
  /// The axes of a value in the file's order, whichever form exists.
  std::optional<graph::Dims> dims(const Value& value) const;
  std::optional<size_t> rank(const Value& value) const;
  DType dtype(const Value& value) const { return builder_.dtype(value.plain != kNone ? value.plain : value.first); }
  /// Whether only the form with channels first exists, so that another one would cost a Transpose.
  static bool prefers_first(const Value& value) { return value.plain == kNone && value.first != kNone; }

  /// Whether the value depends on constants only, so that a pass will fold it.
  bool foldable(ValueId id);
  /// A transposed or reshaped constant; the same bytes are not kept twice.
  ValueId permuted(ValueId constant, const std::vector<int64_t>& order);
  ValueId reshaped(ValueId constant, const Shape& shape);

  /// Constants that other graphs of the file have made of its weights; null: there are none.
  std::map<std::string, graph::ConstantPtr, std::less<>>* shared = nullptr;
  /// A weight of the file: one value for each handle.
  std::map<const NodeDef*, ValuePtr> variables;

  // Facts about results that later nodes ask for.
  struct Scaled {
    ValueId x, scale;  ///< of [channels]
  };
  struct Padded {
    ValueId x;
    std::vector<int64_t> pads;  ///< of the spatial axes: begins, then ends
  };
  struct Split {
    ValueId product;
    std::vector<int64_t> parts;  ///< of its last axis
  };
  std::map<ValueId, Scaled> scaled;
  std::map<ValueId, Split> split;
  std::map<ValueId, Padded> padded;  ///< by zeros
  std::vector<CutTexts> cut_texts;

 private:
  graph::Graph graph_;
  graph::Builder builder_;
  std::vector<bool> foldable_;  // by value
  graph::NodeId examined_ = 0;
};

}  // namespace serin::formats::tf
