// program_desc.cc: ProgramDesc (framework.proto of Paddle, proto2) -> Program. Field numbers stand next to their names below. Attributes that
// cannot change a result (the call stack of the Python program, roles in training) are dropped here.

#include "runtime/formats/paddle/program_desc.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace serin::formats::paddle {
namespace {

using wire::Message;

// VarType.Type, beyond the dtypes
constexpr int64_t kLodTensor = 7, kFeedMinibatch = 9, kFetchList = 10, kTensorArray = 13;

constexpr std::string_view kDropped[] = {"op_callstack", "op_role", "op_role_var", "op_namescope", "op_device", "with_quant_attr"};

struct Var {
  std::string name;
  Declared declared;
  int64_t kind = 0;
  bool persistable = false;
};

void read_lod_tensor(Message in, Declared& declared) {
  while (in.next()) {
    if (in.field() != 1) continue;  // lod_level (2) is no part of the type here
    TensorDesc tensor = read_tensor_desc(in.once().message("TensorDesc"));
    declared.dtype = dtype_of_number(tensor.type), declared.dims = std::move(tensor.dims);
  }
}

void read_var_type(Message in, Var& var) {
  while (in.next()) {
    switch (in.field()) {
      case 1:
        var.kind = in.once().integer();
        var.declared.array = var.kind == kTensorArray;
        break;
      case 3: read_lod_tensor(in.once().message("LoDTensorDesc"), var.declared); break;
      default: break;
    }
  }
}

Var read_var(Message in) {
  Var var;
  while (in.next()) {
    switch (in.field()) {
      case 1: var.name = in.once().text(); break;
      case 2: read_var_type(in.once().message("VarType"), var); break;
      case 3: var.persistable = in.once().integer() != 0; break;
      default: break;
    }
  }
  return var;
}

Slot read_slot(Message in) {
  Slot slot;
  while (in.next()) {
    switch (in.field()) {
      case 1: slot.name = in.once().text(); break;
      case 2: slot.values.emplace_back(in.text()); break;
      default: break;
    }
  }
  return slot;
}

/// A scalar {type 1, b 2, i 3, r 4}.
double read_scalar(Message in) {
  double value = 0;
  while (in.next()) {
    if (in.field() == 2 || in.field() == 3) value = static_cast<double>(in.integer());
    if (in.field() == 4) in.each_fixed<double>([&](double each) { value = each; });
  }
  return value;
}

struct NamedAttribute {
  std::string name;
  std::optional<Attribute> value;
  std::vector<size_t> blocks;
};

NamedAttribute read_attribute(Message in) {
  enum Kind : int64_t {
    kInt,
    kFloat,
    kString,
    kInts,
    kFloats,
    kStrings,
    kBool,
    kBools,
    kBlock,
    kLong,
    kBlocks,
    kLongs,
    kDoubles,
    kVar,
    kVars,
    kDouble,
    kScalar,
    kScalars
  };
  NamedAttribute result;
  int64_t kind = -1, integer = 0;
  double number = 0;
  std::string text;
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  while (in.next()) {
    switch (in.field()) {
      case 1: result.name = in.once().text(); break;
      case 2: kind = in.once().integer(); break;
      case 3:                                                                              // i
      case 10:                                                                             // b
      case 13: integer = in.once().integer(); break;                                       // l
      case 4: number = in.once().number(); break;                                          // f
      case 5: text = in.once().text(); break;                                              // s
      case 6:                                                                              // ints
      case 11:                                                                             // bools
      case 15: in.each_integer([&](int64_t value) { integers.push_back(value); }); break;  // longs
      case 7: in.each_fixed<float>([&](float value) { numbers.push_back(value); }); break;
      case 8: texts.emplace_back(in.text()); break;
      case 12:  // block_idx
      case 14: in.each_integer([&](int64_t value) { result.blocks.push_back(static_cast<size_t>(value)); }); break;
      case 16: in.each_fixed<double>([&](double value) { numbers.push_back(value); }); break;
      case 19: in.each_fixed<double>([&](double value) { number = value; }); break;
      case 20: number = read_scalar(in.once().message("Scalar")); break;
      case 21: numbers.push_back(read_scalar(in.message("Scalar"))); break;
      default: break;
    }
  }
  switch (kind) {
    case kInt: integer = static_cast<int32_t>(integer); [[fallthrough]];
    case kBool:
    case kLong: result.value = integer; break;
    case kFloat:
    case kDouble:
    case kScalar: result.value = number; break;
    case kString: result.value = std::move(text); break;
    case kInts:
    case kBools:
    case kLongs: result.value = std::move(integers); break;
    case kFloats:
    case kDoubles:
    case kScalars: result.value = std::move(numbers); break;
    case kStrings: result.value = std::move(texts); break;
    default: break;  // a block, or an attribute that is a variable: those are operands as well
  }
  return result;
}

Operation read_operation(Message in) {
  Operation op;
  while (in.next()) {
    switch (in.field()) {
      case 1: op.inputs.push_back(read_slot(in.message("OpDesc.Var"))); break;
      case 2: op.outputs.push_back(read_slot(in.message("OpDesc.Var"))); break;
      case 3: op.type = in.once().text(); break;
      case 4: {
        NamedAttribute attribute = read_attribute(in.message("OpDesc.Attr"));
        if (std::ranges::find(kDropped, attribute.name) != std::end(kDropped)) break;
        op.blocks.insert(op.blocks.end(), attribute.blocks.begin(), attribute.blocks.end());
        if (!attribute.value) break;
        if (!op.attributes.emplace(attribute.name, std::move(*attribute.value)).second)
          in.fail(fmt::format("attribute '{}' comes twice", attribute.name));
        break;
      }
      default: break;
    }
  }
  return op;
}

/// The name of its main result says more than the operator does.
std::string name_of(const Operation& op) {
  for (const std::string_view main : {"Out", "Output", "Y", ""})
    for (const Slot& slot : op.outputs)
      if ((main.empty() || slot.name == main) && !slot.values.empty() && !slot.values[0].empty()) return slot.values[0];
  return op.type;
}

class DescReader {
 public:
  void read(Message in) {
    while (in.next()) {
      if (in.field() == 1) read_block(in.message("BlockDesc"));
      if (in.field() == 4) read_version(in.once().message("Version"));
    }
  }
  Program program;
  int64_t version = 0;

 private:
  void read_version(Message in) {
    while (in.next())
      if (in.field() == 1) version = in.once().integer();
  }

  void read_block(Message in) {
    Block block;
    while (in.next()) {
      switch (in.field()) {
        case 3: declare(in, read_var(in.message("VarDesc"))); break;
        case 4: add(in, block, read_operation(in.message("OpDesc"))); break;
        default: break;
      }
    }
    program.blocks.push_back(std::move(block));
  }

  void declare(Message& in, Var var) {
    if (var.kind == kFeedMinibatch || var.kind == kFetchList) return;
    if (var.name.empty()) return in.fail("a variable without a name");
    if (var.persistable && var.kind == kLodTensor) program.parameters.push_back({var.name, var.name});
    const bool first = program.declared.emplace(var.name, std::move(var.declared)).second;
    if (!first && var.persistable) in.fail(fmt::format("variable '{}' is declared twice", var.name));
  }

  void add(Message& in, Block& block, Operation op) {
    const auto only = [&](const std::vector<Slot>& slots) -> std::string {
      const bool one = slots.size() == 1 && slots[0].values.size() == 1 && !slots[0].values[0].empty();
      if (!one) in.fail(fmt::format("'{}' without exactly one value", op.type));
      return one ? slots[0].values[0] : "";
    };
    const auto column = op.attributes.find("col");
    const int64_t* const place = column == op.attributes.end() ? nullptr : std::get_if<int64_t>(&column->second);
    op.name = name_of(op);
    if (op.type == "feed")
      program.feeds.push_back({only(op.outputs), only(op.outputs), place ? *place : 0});
    else if (op.type == "fetch")
      program.fetches.push_back({only(op.inputs), only(op.inputs), place ? *place : 0});
    else
      block.operations.push_back(std::move(op));
  }
};

}  // namespace

TensorDesc read_tensor_desc(Message in) {
  TensorDesc tensor;
  while (in.next()) {
    switch (in.field()) {
      case 1: tensor.type = in.once().integer(); break;
      case 2: in.each_integer([&](int64_t dim) { tensor.dims.push_back(dim); }); break;
      default: break;
    }
  }
  return tensor;
}

Result<Program> read_program_desc(wire::Bytes bytes, size_t most_parts) {
  wire::Decoding decoding{.begin = bytes.data(), .message_limit = most_parts, .error = {}};
  DescReader reader;
  reader.read(Message(decoding, "ProgramDesc", bytes));
  if (decoding.error) return *decoding.error;
  if (reader.program.blocks.empty()) return Error{Code::kCorrupt, "has no block"};
  // 1.8.5 is 1008005; programs of development builds have version 0
  if (reader.version < 0 || reader.version >= 4'000'000)
    return Error{Code::kUnsupported, fmt::format("has program version {}; those of Paddle 1 to 3 are read", reader.version)};
  return std::move(reader.program);
}

}  // namespace serin::formats::paddle
