// scope.h: the values of a block while it becomes a graph. Bodies have scopes of their own; values from outside are handed in to them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/formats/paddle/program.h"
#include "runtime/graph/builder.h"

namespace serin::formats::paddle {

/// A block that runs only under a condition, until its results are chosen (control.cc).
struct Pending {
  size_t place = 0;  ///< of the operation in its block
  size_t block = 0;
};

class Scope {
 public:
  Scope(const Program& source, graph::Graph& graph) : program(source), b(graph) {}

  const Program& program;
  graph::Builder b;
  std::map<std::string, graph::ValueId, std::less<>> values;

  // The place in the program.
  size_t block = 0, place = 0;
  std::set<size_t> done;  ///< places of operations of this block that another one has imported with itself
  std::map<std::string, Pending, std::less<>> pending;

  /// An error if nothing has defined it yet.
  graph::ValueId find(std::string_view name);
  bool has(std::string_view name) const { return values.find(name) != values.end(); }
  const Declared& declared(std::string_view name) const;
};

}  // namespace serin::formats::paddle
