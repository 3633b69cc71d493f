// operators.cc: finds the row of a target in the tables of all families.

#include "runtime/formats/torch/operators.h"

#include <initializer_list>
#include <map>

namespace serin::formats::torch {
namespace {

using Table = std::map<std::string_view, const OperatorRow*>;

using Families = std::initializer_list<std::span<const OperatorRow>>;

Table all_rows(Families families) {
  Table table;
  for (const auto family : families)
    for (const OperatorRow& row : family) table.emplace(row.target, &row);
  return table;
}

/// "aten.add.Tensor", of "torch.ops.aten.add.Tensor".
std::string_view plain(std::string_view target) {
  for (const std::string_view prefix : {"torch.ops.", "_"})
    if (target.starts_with(prefix)) target.remove_prefix(prefix.size());
  return target;
}

const OperatorRow* find(const Table& table, std::string_view target) {
  target = plain(target);
  const auto whole = table.find(target);
  if (whole != table.end()) return whole->second;
  const auto name = table.find(target.substr(0, target.rfind('.')));
  return name == table.end() ? nullptr : name->second;
}

}  // namespace

const OperatorRow* find_operator(std::string_view target) {
  static const Table table = all_rows(
      {elementwise_operators(), binary_operators(),   reduce_operators(),  shape_operators(),    slice_operators(),   movement_operators(),
       selection_operators(),   creation_operators(), product_operators(), pool_operators(),     norm_operators(),    image_operators(),
       sequence_operators(),    size_operators(),     program_operators(), distance_operators(), scatter_operators(), cell_operators(),
       diagonal_operators(),    window_operators(),   scan_operators(),    order_operators(),    fourier_operators(), signal_operators()});
  return find(table, target);
}

const OperatorRow* find_complex_operator(std::string_view target) {
  static const Table table =
      all_rows({complex_operators(), complex_part_operators(), fourier_operators(), signal_operators(), program_operators()});
  return find(table, target);
}

std::string functional_target(std::string_view target) {
  const size_t dot = target.rfind('.');
  if (dot == std::string_view::npos || !plain(target).starts_with("aten.")) return {};
  const std::string_view name = target.substr(0, dot);
  if (!name.ends_with('_') || name.ends_with("__")) return {};
  return std::string(name.substr(0, name.size() - 1)) + std::string(target.substr(dot));
}

}  // namespace serin::formats::torch
