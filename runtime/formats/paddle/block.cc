// block.cc: runs over the operations of a block and hands each to the function of its row.

#include "runtime/formats/paddle/block.h"

#include <fmt/format.h>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {

void import_block(Scope& scope, size_t block) {
  const std::vector<Operation>& operations = scope.program.blocks[block].operations;
  scope.block = block;
  for (scope.place = 0; scope.place < operations.size() && !scope.b.error(); ++scope.place) {
    if (scope.done.contains(scope.place)) continue;
    const Operation& op = operations[scope.place];
    const OperatorRow* const row = find_operator(scope.program, op.type);
    scope.b.start(op.name);
    if (!row) return scope.b.fail(Code::kUnsupported, fmt::format("operator '{}'", op.type));
    Node node(scope, op, row->operands, row->results);
    if (!scope.b.error()) row->import(node, row->op);
  }
}

std::set<std::string, std::less<>> defined_values(const Program& program, size_t block) {
  std::set<std::string, std::less<>> defined;
  for (const Operation& op : program.blocks[block].operations)
    for (const Slot& slot : op.outputs)
      for (const std::string& name : slot.values) defined.insert(name);
  return defined;
}

std::vector<std::string> free_values(const Program& program, size_t block) {
  const Block& source = program.blocks[block];
  std::set<std::string, std::less<>> known(source.arguments.begin(), source.arguments.end());
  std::vector<std::string> result;
  const auto read = [&](const std::string& name) {
    if (!name.empty() && known.insert(name).second) result.push_back(name);
  };
  for (const Operation& op : source.operations) {
    for (const Slot& slot : op.inputs)
      for (const std::string& name : slot.values) read(name);
    for (const size_t body : op.blocks) {
      // A body comes after the block that runs it (checked when the program was read), so this ends.
      for (const std::string& name : free_values(program, body)) read(name);
    }
    for (const Slot& slot : op.outputs) known.insert(slot.values.begin(), slot.values.end());
  }
  for (const std::string& name : source.results) read(name);
  return result;
}

}  // namespace serin::formats::paddle
