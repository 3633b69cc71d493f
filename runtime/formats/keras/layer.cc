// layer.cc: settings, weights and nodes of a layer.

#include "runtime/formats/keras/layer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "kernels/float16.h"

namespace serin::formats::keras {

int64_t Layer::integer(std::string_view key, int64_t fallback) {
  if (!is_set(key)) return fallback;
  const auto value = config_[key].integer();
  if (!value) corrupt(fmt::format("'{}' is no integer", key));
  return value.value_or(fallback);
}

double Layer::number(std::string_view key, double fallback) {
  if (!is_set(key)) return fallback;
  const auto value = config_[key].number();
  if (!value) corrupt(fmt::format("'{}' is no number", key));
  return value.value_or(fallback);
}

List Layer::integers_of(Json value, std::string_view what) {
  List list;
  if (const auto one = value.integer()) return {*one};
  if (!value.is_array()) {
    corrupt(fmt::format("'{}' is no list of integers", what));
    return list;
  }
  for (const Json& each : value.items()) {
    const auto number = each.integer();
    if (!number) {
      corrupt(fmt::format("'{}' is no list of integers", what));
      return {};
    }
    list.push_back(*number);
  }
  return list;
}

List Layer::integers(std::string_view key, size_t count, int64_t fallback) {
  if (!is_set(key)) return List(count, fallback);
  List list = integers_of(config_[key], key);
  if (list.size() == 1 && config_[key].is_number()) list.resize(count, list.front());
  if (list.size() != count) {
    corrupt(fmt::format("'{}' has {} integers, {} are needed", key, list.size(), count));
    list.resize(count, fallback);
  }
  return list;
}

const Tensor& Layer::input(size_t i) {
  static const Tensor none{std::make_shared<tf::Value>()};
  if (i < inputs_.size() && inputs_[i].value && inputs_[i].value->tensor()) return inputs_[i];
  corrupt(fmt::format("needs input {}, the call has {}", i, inputs_.size()));
  return none;
}

int64_t Layer::size(size_t i, int64_t axis) {
  const auto known = dims(i);
  if (!known) {
    unsupported("its input has no known rank");
    return 1;
  }
  const int64_t at = axis < 0 ? axis + static_cast<int64_t>(known->size()) : axis;
  if (at < 0 || at >= static_cast<int64_t>(known->size())) {
    corrupt(fmt::format("its input has {} axes, and no axis {}", known->size(), axis));
    return 1;
  }
  const auto size = (*known)[static_cast<size_t>(at)].value();
  if (!size) unsupported(fmt::format("axis {} of its input has no known size", axis));
  return size.value_or(1);
}

bool Layer::has_weight(size_t index, std::string_view inner) const {
  return shared_.weights.find(fmt::format("{}{}vars/{}", folder_, inner, index)) != nullptr;
}

DType dtype_named(std::string_view name) {
  constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"float32", DType::kFloat32}, {"float64", DType::kFloat64}, {"float16", DType::kFloat16}, {"bfloat16", DType::kBFloat16},
      {"int32", DType::kInt32},     {"int64", DType::kInt64},     {"int16", DType::kInt16},     {"int8", DType::kInt8},
      {"uint8", DType::kUInt8},     {"uint16", DType::kUInt16},   {"uint32", DType::kUInt32},   {"uint64", DType::kUInt64},
      {"bool", DType::kBool},       {"string", DType::kString}};
  for (const auto& [own, dtype] : kTypes)
    if (own == name) return dtype;
  return DType::kUndefined;
}

DType narrow_named(std::string_view name) {
  if (name.starts_with("mixed_")) name.remove_prefix(6);
  return name == "float16" ? DType::kFloat16 : name == "bfloat16" ? DType::kBFloat16 : DType::kUndefined;
}

/// Of a layer: its policy's type. Of an operation: the type that all its operands of floating point have; those that are written in the call adapt.
DType Layer::declared() {
  if (declared_) return *declared_;
  if (call_.operation) {
    std::optional<DType> common;
    for (const Tensor& each : inputs_) {
      if (!is_float(scope().dtype(*each.value))) continue;
      if (!is_float(each.declared) || (common && *common != each.declared)) return DType::kUndefined;
      common = each.declared;
    }
    return common.value_or(DType::kUndefined);
  }
  const Json policy = config_["dtype"];
  return narrow_named(policy.is_object() ? policy["config"]["name"].text_or("") : policy.text_or(""));
}

namespace {

/// Weights of 16 or 64 bits as f32, converted when they are read.
graph::ConstantPtr as_f32(const graph::ConstantPtr& constant) {
  if (!is_float(constant->dtype) || constant->dtype == DType::kFloat32) return constant;
  return graph::make_constant(DType::kFloat32, constant->shape, [constant](std::span<std::byte> bytes) -> Status {
    auto* const to = reinterpret_cast<float*>(bytes.data());
    const auto convert = [&](const auto& from, auto&& widened) { std::ranges::transform(from, to, widened); };
    switch (constant->dtype) {
      case DType::kFloat16: convert(constant->span<kernels::Half>(), [](kernels::Half x) { return to_float(x); }); break;
      case DType::kBFloat16: convert(constant->span<kernels::BFloat16>(), [](kernels::BFloat16 x) { return to_float(x); }); break;
      default: convert(constant->span<double>(), [](double x) { return static_cast<float>(x); });
    }
    return {};
  });
}

}  // namespace

graph::ConstantPtr Layer::constant_weight(size_t index, std::initializer_list<int64_t> shape, std::string_view what,
                                          std::string_view inner) {
  const std::string path = fmt::format("{}{}vars/{}", folder_, inner, index);
  auto found = shared_.weights.constant(path);
  if (!found) {
    b().fail(found.error().code, fmt::format("{}: {}", what, found.error().message));
    return nullptr;
  }
  const Shape& own = (*found)->shape;
  bool fits = own.rank() == shape.size();
  size_t axis = 0;
  for (const int64_t wanted : shape) {
    fits = fits && (wanted < 0 || own[axis] == wanted);
    ++axis;
  }
  if (fits) return as_f32(*found);
  corrupt(fmt::format("{}: weight '{}' is {}, [{}] is needed", what, path, own.str(), fmt::join(shape, ",")));
  return nullptr;
}

ValuePtr Layer::weight(size_t index, std::initializer_list<int64_t> shape, std::string_view what, std::string_view inner) {
  const graph::ConstantPtr constant = constant_weight(index, shape, what, inner);
  if (!constant) return std::make_shared<tf::Value>();
  return tf::plain_value(b().constant(fmt::format("{}{}vars/{}", folder_, inner, index), constant));
}

ValuePtr Layer::op(std::string_view name, std::vector<ValuePtr> inputs, tf::Attrs attrs) {
  if (failed()) return std::make_shared<tf::Value>();
  const std::string node = b().node();
  const tf::NodeDef def{node, name, {}, std::move(attrs)};
  auto results = shared_.importer.apply(shared_.scope, def, std::move(inputs));
  return results.empty() ? std::make_shared<tf::Value>() : results.front();
}

ValuePtr Layer::constant(const List& values) { return tf::plain_value(b().integers(values)); }
ValuePtr Layer::number_of(double value) { return tf::plain_value(b().number(DType::kFloat32, value)); }

ValuePtr Layer::floats(const std::vector<float>& values, const Shape& shape) {
  return tf::plain_value(b().constant(graph::make_constant(DType::kFloat32, shape, values.data())));
}

ValuePtr Layer::map(const ValuePtr& x, const std::function<ValueId(ValueId)>& function) {
  if (!tf::Scope::prefers_first(*x)) return tf::plain_value(function(scope().plain(*x)));
  auto result = std::make_shared<tf::Value>();
  result->first = function(scope().first(*x));
  return result;
}

void Layer::out_first(ValueId id) {
  auto value = std::make_shared<tf::Value>();
  value->first = id;
  out(std::move(value));
}

ValuePtr Layer::as_float(const ValuePtr& x) {
  const DType dtype = scope().dtype(*x);
  if (dtype == DType::kFloat32) return x;
  if (dtype == DType::kString) unsupported("its input is text");
  return map(x, [&](ValueId id) { return b().cast(id, DType::kFloat32); });
}

tf::Attr attr(const List& values) {
  tf::Attr attr;
  for (const int64_t value : values) {
    tf::Attr& each = attr.list.emplace_back();
    each.integer = value;
  }
  return attr;
}

tf::Attr attr(int64_t value) {
  tf::Attr attr;
  attr.integer = value;
  return attr;
}

tf::Attr attr(double value) {
  tf::Attr attr;
  attr.number = static_cast<float>(value);
  return attr;
}

tf::Attr attr(std::string_view text) {
  tf::Attr attr;
  attr.text = text;
  return attr;
}

bool is_operation(std::string_view module) { return module.starts_with("keras.src.ops") || module.starts_with("keras.ops"); }

const LayerRow* find_layer(std::string_view module, std::string_view class_name) {
  const auto find = [class_name](std::span<const LayerRow> rows) -> const LayerRow* {
    const auto found = std::ranges::find(rows, class_name, &LayerRow::name);
    return found == rows.end() ? nullptr : &*found;
  };
  if (is_operation(module)) return find(operations());
  for (const auto& family : {attention_layers(), convolution_layers(), core_layers(), lookup_layers(), movement_layers(), norm_layers(),
                             pooling_layers(), recurrent_layers()}) {
    if (const LayerRow* const row = find(family)) return row;
  }
  return nullptr;
}

}  // namespace serin::formats::keras
