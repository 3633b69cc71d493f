// program.cc: which values are read, and the names and numbers of Paddle's dtypes.

#include "runtime/formats/paddle/program.h"

namespace serin::formats::paddle {
namespace {

struct TypeRow {
  int number;  ///< in a ProgramDesc
  DType dtype;
  std::string_view attribute, type;  ///< spellings of PIR
};

constexpr TypeRow kTypes[] = {
    {0, DType::kBool, "bool", "bool"},          {1, DType::kInt16, "int16", "i16"},     {2, DType::kInt32, "int32", "i32"},
    {3, DType::kInt64, "int64", "i64"},         {4, DType::kFloat16, "float16", "f16"}, {5, DType::kFloat32, "float32", "f32"},
    {6, DType::kFloat64, "float64", "f64"},     {20, DType::kUInt8, "uint8", "ui8"},    {21, DType::kInt8, "int8", "i8"},
    {22, DType::kBFloat16, "bfloat16", "bf16"},
};

}  // namespace

void find_reads(Program& program) {
  for (const Block& block : program.blocks) {
    for (const Operation& op : block.operations)
      for (const Slot& slot : op.inputs) program.reads.insert(slot.values.begin(), slot.values.end());
    program.reads.insert(block.results.begin(), block.results.end());
    // What a body of a ProgramDesc assigns may be read by the next turn, or by the block around it.
    for (const Operation& op : block.operations)
      for (const Slot& slot : op.outputs)
        if (!program.pir && &block != program.blocks.data()) program.reads.insert(slot.values.begin(), slot.values.end());
  }
  for (const Named& fetch : program.fetches) program.reads.insert(fetch.value);
  program.reads.erase("");
}

DType dtype_of_number(int64_t number) {
  for (const TypeRow& row : kTypes)
    if (row.number == number) return row.dtype;
  return DType::kUndefined;
}

DType dtype_of_name(std::string_view name) {
  for (const TypeRow& row : kTypes)
    if (row.attribute == name || row.type == name) return row.dtype;
  return DType::kUndefined;
}

}  // namespace serin::formats::paddle
