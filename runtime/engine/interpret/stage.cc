// stage.cc: decides whether a stage that was made earlier fits the present facts.

#include "runtime/engine/interpret/stage.h"

#include <algorithm>
#include <cstring>

namespace serin::engine {

bool Fact::holds(const Value& value) const {
  if (value.kind != kind || value.dtype != dtype) return false;
  if (!value.tensor) return true;
  if (value.tensor->shape != shape) return false;
  return !contents || contents->bytes() == 0 || std::memcmp(contents->data().get(), value.tensor->data().get(), contents->bytes()) == 0;
}

Fact fact_of(const Value& value, bool with_contents) {
  Fact fact{value.kind, value.dtype, value.tensor ? value.tensor->shape : Shape(), nullptr};
  if (with_contents && value.tensor)
    fact.contents = graph::make_constant(value.tensor->dtype, value.tensor->shape, value.tensor->data().get());
  return fact;
}

Stage* Stage::find_next(const std::vector<Value>& values) {
  const auto matches = [&](const Next& candidate) {
    if (candidate.facts.size() != shaped.size() + asked.size()) return false;
    for (size_t i = 0; i < candidate.facts.size(); ++i) {
      const graph::ValueId id = i < shaped.size() ? shaped[i] : asked[i - shaped.size()];
      if (!candidate.facts[i].holds(values[static_cast<size_t>(id)])) return false;
    }
    return true;
  };
  const Next* found = next.find(matches);
  return found ? found->stage.get() : nullptr;
}

}  // namespace serin::engine
