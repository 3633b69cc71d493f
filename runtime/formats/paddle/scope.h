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

/// A list of tensors (arrays.cc).
struct Array {
  int64_t axis = 0;                       ///< along which its elements are joined
  bool stacks = true;                     ///< elements get that axis; otherwise they have it
  graph::ValueId joined = graph::kNone;   ///< kNone: empty, and the shape of an element is not known
  graph::ValueId lengths = graph::kNone;  ///< i64 of rank 1: the size of each element along the axis
  bool fixed = false;                     ///< in a branch, which may only read it
};

class Scope;
/// An empty array of that name (arrays.cc).
void create_array(Scope& scope, const std::string& name);

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

  std::map<std::string, Array, std::less<>> arrays;
  std::map<std::string, std::string, std::less<>> array_names;  ///< results of writes, which are the same array
  std::map<std::string, std::string, std::less<>> ends;         ///< values that are the length of an array, until it grows

  /// Null if that is no array. A ProgramDesc only declares arrays: they are empty at first.
  Array* array(std::string_view name);
  /// An error if nothing has defined it yet.
  graph::ValueId find(std::string_view name);
  bool has(std::string_view name) const { return values.find(name) != values.end(); }
  const Declared& declared(std::string_view name) const;
};

}  // namespace serin::formats::paddle
