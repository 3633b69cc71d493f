// program.h: a Paddle program as plain data, whichever of the two file formats it was stored in.
//
//   .pdmodel, __model__   ProgramDesc, a protobuf message: operands have names ("X", "Filter"), values have names, and blocks assign to them
//   .json                 PIR, the format of Paddle 3: operands are counted, and values are numbers
//
// In a Program every value has a name (the number of a PIR value is "%12"). Lists that PIR packs (builtin.combine) and unpacks (builtin.split)
// are operands and results of several values, as in a ProgramDesc. Operand names are empty where the file has none: the table of operators
// (operators.h) adds them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/tensor.h"

namespace serin::formats::paddle {

/// Of an operation. Booleans are integers; a dtype is the number of a ProgramDesc or the name of PIR.
using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;

/// The declared type of a value.
struct Declared {
  DType dtype = DType::kUndefined;  ///< kUndefined: not declared, or no tensor
  std::vector<int64_t> dims;        ///< below 0: unknown
  bool array = false;               ///< of tensors (arrays.cc); the others are left as they are
};

struct Slot {
  std::string name;                 ///< "X"; empty: the operand's position counts
  std::vector<std::string> values;  ///< usually one; empty: absent
};

struct Operation {
  std::string type;  ///< "conv2d": without dialect, without the underscore of a variant that works in place
  std::string name;  ///< for errors, and for the nodes made from it
  std::vector<Slot> inputs, outputs;
  std::map<std::string, Attribute, std::less<>> attributes;
  std::vector<size_t> blocks;  ///< bodies, in Program::blocks
};

struct Block {
  std::vector<std::string> arguments;  ///< PIR only: values that the caller passes
  std::vector<Operation> operations;
  std::vector<std::string> results;  ///< PIR only: values that the block yields
};

/// A value with a name outside: an input, an output or a parameter.
struct Named {
  std::string name;
  std::string value;
  int64_t column = 0;  ///< position among the inputs or outputs
};

struct Program {
  bool pir = false;
  std::vector<Block> blocks;  ///< the first one is the model; a body comes after the block that runs it
  std::map<std::string, Declared, std::less<>> declared;
  std::vector<Named> parameters, feeds, fetches;
  std::set<std::string, std::less<>> reads;  ///< values that anything reads (find_reads)
  std::vector<Named> unstored;               ///< parameters without elements: state of training, which operators may name but do not read
};

/// Fills Program::reads.
void find_reads(Program& program);

/// The dtype of that number in a ProgramDesc (VarType.Type); kUndefined: none, or one that no engine has.
DType dtype_of_number(int64_t number);
/// The dtype that PIR calls "float32" (attributes) or "f32" (types).
DType dtype_of_name(std::string_view name);

}  // namespace serin::formats::paddle
