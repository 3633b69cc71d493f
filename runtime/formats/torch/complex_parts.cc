// complex_parts.cc: functions that move, select or add elements, of real and imaginary parts alike, and products of tensors. Those of real
// numbers import them, once for each part.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/formats/torch/complex.h"

namespace serin::formats::torch {
namespace {

using graph::kNone;
using graph::Op;
using graph::ValueId;
using Values = std::vector<ValueId>;

enum class Part : uint8_t { kReal, kImaginary };

/// Arguments whose elements come out again. The imaginary parts of real ones are zeros; masks and indices stay as they are.
constexpr std::array<std::string_view, 8> kOperands = {"self", "other", "tensors", "values", "src", "value", "fill_value", "s"};
bool is_operand(std::string_view name) { return std::ranges::find(kOperands, name) != kOperands.end(); }

ValueId part_of(NodeImport& node, ValueId x, Part part) {
  const Parts parts = parts_of(node, x);
  return part == Part::kReal ? parts.real : parts.imaginary;
}

Values imported(NodeImport& node) {
  const std::string functional = functional_target(node.node().target);
  const OperatorRow* const row = find_operator(functional.empty() ? node.node().target : functional);
  if (!row) return node.unsupported("is not supported for complex numbers"), Values();
  row->import(node, row->op);
  return node.results();
}

void stand_in_number(NodeImport& one, const std::string& name, const Argument& argument, Part part) {
  const bool number = argument.kind == "as_int" || argument.kind == "as_float" || argument.kind == "as_bool";
  if (number && part == Part::kImaginary && is_operand(name)) one.stand_in(name, 0.0);
  if (argument.kind != "as_complex") return;
  const auto value = argument.value[part == Part::kReal ? "real" : "imag"].number();
  if (!value) one.unsupported(fmt::format("argument '{}' is a complex number without finite parts", name));
  one.stand_in(name, value.value_or(0));
}

/// The results of the function of real numbers for one part of all operands.
Values of_part(NodeImport& node, Part part) {
  NodeImport one(node.scope(), node.b, node.node());
  for (const auto& [name, argument] : node.node().arguments) {
    const auto tensors = tensor_names(argument);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TensorMeta* const declared = node.scope().meta(tensors[i]);
      const ValueId x = declared ? node.scope().find(tensors[i]) : kNone;
      if (x == kNone) continue;
      if (declared->complex)
        one.stand_in(name, i, part_of(node, x, part));
      else if (part == Part::kImaginary && is_operand(name))
        one.stand_in(name, i, zeros_like(node, x));
    }
    stand_in_number(one, name, argument, part);
  }
  return imported(one);
}

void give_joined(NodeImport& node, const Values& real, const Values& imaginary) {
  Values results;
  for (size_t i = 0; i < std::min(real.size(), imaginary.size()); ++i) results.push_back(as_complex(node, {real[i], imaginary[i]}));
  node.give(std::move(results));
}

void import_parts(NodeImport& node, Op) {
  const Values real = of_part(node, Part::kReal);
  if (!node.b.error()) give_joined(node, real, of_part(node, Part::kImaginary));
}

/// adjoint: moved, with the sign of the imaginary part turned.
void import_conjugate_parts(NodeImport& node, Op) {
  const Values real = of_part(node, Part::kReal), imaginary = of_part(node, Part::kImaginary);
  if (!node.b.error()) node.give(as_complex(node, {real.at(0), node.b.add(Op::kNeg, {imaginary.at(0)})}));
}

/// Sizes: those of a part.
void import_of_real_part(NodeImport& node, Op) { node.give(of_part(node, Part::kReal)); }

/// ones, eye: the imaginary parts are zeros.
void import_with_zeros(NodeImport& node, Op) {
  Values real = of_part(node, Part::kReal);
  for (ValueId& each : real) each = as_complex(node, {each, kNone});
  node.give(std::move(real));
}

/// To a type of real numbers, the real part.
void import_complex_to(NodeImport& node, Op op) { node.gives_complex() ? import_parts(node, op) : import_of_real_part(node, op); }

struct Factor {
  std::string name;
  size_t index;
  ValueId value;
};

/// The results for the given parts of the factors, the first results of which count.
ValueId of_factors(NodeImport& node, const std::vector<Factor>& factors, std::initializer_list<Part> parts) {
  NodeImport one(node.scope(), node.b, node.node());
  auto factor = factors.begin();
  for (const Part part : parts) {
    one.stand_in(factor->name, factor->index, part_of(node, factor->value, part));
    ++factor;
  }
  const Values results = imported(one);
  return results.empty() ? kNone : results[0];
}

/// Products of two tensors, sums of such. The real part is re re - im im, the imaginary one re im + im re.
void import_tensor_product(NodeImport& node, Op) {
  std::vector<Factor> factors;
  for (const auto& [name, argument] : node.node().arguments) {
    const auto tensors = tensor_names(argument);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TensorMeta* const declared = node.scope().meta(tensors[i]);
      if (declared && declared->complex) factors.push_back({name, i, node.scope().find(tensors[i])});
    }
  }
  if (factors.size() > 2) return node.unsupported("a product of more than two tensors of complex numbers");
  if (std::ranges::any_of(factors, [](const Factor& factor) { return factor.value == kNone; }))
    return node.corrupt("reads what nothing before it makes");
  if (factors.size() == 1)
    return node.give(as_complex(node, {of_factors(node, factors, {Part::kReal}), of_factors(node, factors, {Part::kImaginary})}));
  const auto product = [&](Part a, Part b) { return of_factors(node, factors, {a, b}); };
  const ValueId rr = product(Part::kReal, Part::kReal), ii = product(Part::kImaginary, Part::kImaginary),
                ri = product(Part::kReal, Part::kImaginary), ir = product(Part::kImaginary, Part::kReal);
  if (node.b.error()) return;
  node.give(as_complex(node, {node.b.add(Op::kSub, {rr, ii}), node.b.add(Op::kAdd, {ri, ir})}));
}

/// `op`: how a write into a view is one into its operand; kConcat: it is refused.
constexpr OperatorRow by_parts(std::string_view target, Alias alias = Alias::kNone, Op op = Op::kConcat) {
  return {target, import_parts, op, alias};
}
constexpr OperatorRow tensor_product(std::string_view target) { return {target, import_tensor_product}; }

constexpr OperatorRow kParts[] = {
    by_parts("aten._unsafe_view", Alias::kMaybe),
    by_parts("aten.alias", Alias::kView, Op::kIdentity),
    by_parts("aten.broadcast_to", Alias::kView),
    by_parts("aten.cat"),
    by_parts("aten.chunk", Alias::kView),
    by_parts("aten.clone"),
    by_parts("aten.concat"),
    by_parts("aten.constant_pad_nd"),
    by_parts("aten.contiguous", Alias::kMaybe),
    by_parts("aten.copy"),
    by_parts("aten.cumsum"),
    by_parts("aten.detach", Alias::kView, Op::kIdentity),
    by_parts("aten.diagonal", Alias::kView),
    by_parts("aten.diff"),
    by_parts("aten.empty"),
    by_parts("aten.expand", Alias::kView),
    by_parts("aten.expand_as", Alias::kView),
    by_parts("aten.fft_fftshift"),
    by_parts("aten.fft_ifftshift"),
    by_parts("aten.fill"),
    by_parts("aten.flatten", Alias::kMaybe),
    by_parts("aten.flip"),
    by_parts("aten.full"),
    by_parts("aten.full_like"),
    by_parts("aten.gather"),
    by_parts("aten.index"),
    by_parts("aten.index_put"),
    by_parts("aten.index_select"),
    by_parts("aten.lift_fresh_copy"),
    by_parts("aten.masked_fill"),
    by_parts("aten.mean"),
    by_parts("aten.moveaxis", Alias::kView),
    by_parts("aten.movedim", Alias::kView),
    by_parts("aten.mT", Alias::kView),
    by_parts("aten.narrow", Alias::kView),
    by_parts("aten.neg"),
    by_parts("aten.new_full"),
    by_parts("aten.new_zeros"),
    by_parts("aten.pad"),
    by_parts("aten.permute", Alias::kView),
    by_parts("aten.ravel", Alias::kMaybe),
    by_parts("aten.repeat"),
    by_parts("aten.repeat_interleave"),
    by_parts("aten.reshape", Alias::kMaybe),
    by_parts("aten.roll"),
    by_parts("aten.scalar_tensor"),
    by_parts("aten.select", Alias::kView, Op::kGather),
    by_parts("aten.select_scatter"),
    by_parts("aten.slice", Alias::kView, Op::kSlice),
    by_parts("aten.slice_scatter"),
    by_parts("aten.split", Alias::kView),
    by_parts("aten.split_with_sizes", Alias::kView),
    by_parts("aten.squeeze", Alias::kView, Op::kSqueeze),
    by_parts("aten.stack"),
    by_parts("aten.sum"),
    by_parts("aten.swapaxes", Alias::kView),
    by_parts("aten.t", Alias::kView),
    by_parts("aten.tile"),
    by_parts("aten.transpose", Alias::kView),
    by_parts("aten.tril"),
    by_parts("aten.triu"),
    by_parts("aten.unbind", Alias::kView),
    by_parts("aten.unflatten", Alias::kView),
    by_parts("aten.unfold", Alias::kView),
    by_parts("aten.unsqueeze", Alias::kView, Op::kUnsqueeze),
    by_parts("aten.view", Alias::kView, Op::kReshape),
    by_parts("aten.view_as", Alias::kView),
    by_parts("aten.where"),
    by_parts("aten.zeros"),
    by_parts("aten.zeros_like"),
    tensor_product("aten.bmm"),
    tensor_product("aten.dot"),
    tensor_product("aten.einsum"),
    tensor_product("aten.inner"),
    tensor_product("aten.matmul"),
    tensor_product("aten.mm"),
    tensor_product("aten.mv"),
    tensor_product("aten.outer"),
    tensor_product("aten.tensordot"),
    {"aten._to_copy", import_complex_to},
    {"aten.adjoint", import_conjugate_parts, Op::kConcat, Alias::kView},
    {"aten.eye", import_with_zeros},
    {"aten.mH", import_conjugate_parts, Op::kConcat, Alias::kView},
    {"aten.matrix_H", import_conjugate_parts, Op::kConcat, Alias::kView},
    {"aten.new_ones", import_with_zeros},
    {"aten.numel", import_of_real_part},
    {"aten.ones", import_with_zeros},
    {"aten.ones_like", import_with_zeros},
    {"aten.sym_numel", import_of_real_part},
    {"aten.sym_size", import_of_real_part},
    {"aten.to", import_complex_to},
    {"aten.type_as", import_complex_to},
};

}  // namespace

std::span<const OperatorRow> complex_part_operators() { return kParts; }

}  // namespace serin::formats::torch
