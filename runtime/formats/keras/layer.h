// layer.h: one call of a layer, as the function sees it that lowers its class.
//
//   void import_flatten(Layer& layer) { layer.out(layer.b().reshape(layer.plain(0), {0, -1})); }
//
// Layers become nodes of TensorFlow where it has such nodes (op()), because its importer knows channels last, paddings and biases. So a model of convolutions ends
// in the graph of its SavedModel. Others are written with the builder.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/formats/json_document.h"
#include "runtime/formats/keras/hdf5.h"
#include "runtime/formats/tensorflow/import.h"
#include "runtime/formats/zip_archive.h"

namespace serin::formats::keras {

using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;
using tf::ValuePtr;

/// A tensor between layers. `mask` [batch, steps] says which steps count, where a layer before said so; null: all do.
/// `declared`: the type that the tensor has in Keras, where it is f32 here: f16 and bf16, which are computed in f32, and i64 of counts.
struct Tensor {
  ValuePtr value;
  ValuePtr mask = nullptr;
  DType declared = DType::kUndefined;
};

/// A type by its name in Keras; undefined if it is none.
DType dtype_named(std::string_view name);
/// f16 and bf16, of which Keras has names of policies, too: "mixed_float16". Undefined for others.
DType narrow_named(std::string_view name);

/// The parts of a file that all layers share.
struct Shared {
  tf::Importer& importer;
  tf::Scope& scope;
  const Hdf5& weights;
  const ZipArchive& archive;
};

class Layer {
 public:
  /// The arguments of a call: `args` and `kwargs` as the file has them, and which of the inputs have a name.
  struct Call {
    Json json = {};
    size_t positional = 1;  ///< the first inputs, which have none
    std::vector<std::pair<std::string, size_t>> named = {};
    bool operation = false;  ///< of keras.ops, which has no policy
  };
  /// `config`: the settings; `folder`: of its weights, "layers/dense/". `inputs`: the tensors among the arguments.
  Layer(Shared& shared, std::string class_name, Json config, std::string folder, std::vector<Tensor> inputs, Call call)
      : shared_(shared),
        class_(std::move(class_name)),
        config_(config),
        folder_(std::move(folder)),
        inputs_(std::move(inputs)),
        call_(std::move(call)) {}

  const std::string& class_name() const { return class_; }
  graph::Builder& b() { return shared_.scope.builder(); }
  tf::Scope& scope() { return shared_.scope; }
  Shared& shared() { return shared_; }
  const std::string& folder() const { return folder_; }

  // Settings. A wrong kind is an error of the file.
  Json config() const { return config_; }
  Json setting(std::string_view key) const { return config_[key]; }
  bool is_set(std::string_view key) const { return config_[key] && !config_[key].is_null(); }
  int64_t integer(std::string_view key, int64_t fallback);
  double number(std::string_view key, double fallback);
  bool flag(std::string_view key, bool fallback = false) const { return config_[key].boolean().value_or(fallback); }
  std::string text(std::string_view key, std::string_view fallback = "") const { return config_[key].text_or(fallback); }
  /// `count` integers; one number stands for all.
  List integers(std::string_view key, size_t count, int64_t fallback);
  List all_integers(std::string_view key) { return integers_of(config_[key], key); }
  List integers_of(Json value, std::string_view what);
  bool channels_first() const { return text("data_format") == "channels_first"; }

  // Operands.
  size_t inputs() const { return inputs_.size(); }
  const Tensor& input(size_t i);
  const ValuePtr& value(size_t i) { return input(i).value; }
  ValueId plain(size_t i) { return shared_.scope.plain(*value(i)); }
  std::optional<size_t> rank(size_t i) { return shared_.scope.rank(*value(i)); }
  std::optional<graph::Dims> dims(size_t i) { return shared_.scope.dims(*value(i)); }
  /// The size of an axis that has to be known; negative axes count from the end. An error otherwise.
  int64_t size(size_t i, int64_t axis);
  /// All arguments, also those that are no tensors.
  Json call() const { return call_.json; }
  size_t positional() const { return call_.positional; }
  /// The inputs of a named argument, in order.
  std::vector<size_t> named(std::string_view name) const {
    std::vector<size_t> found;
    for (const auto& [own, input] : call_.named)
      if (own == name) found.push_back(input);
    return found;
  }

  // Weights: number `index` of this layer, or of a layer in it ("cell/"). -1: any size. f32, unless it is text or integers.
  ValuePtr weight(size_t index, std::initializer_list<int64_t> shape, std::string_view what, std::string_view inner = "");
  bool has_weight(size_t index, std::string_view inner = "") const;
  graph::ConstantPtr constant_weight(size_t index, std::initializer_list<int64_t> shape, std::string_view what,
                                     std::string_view inner = "");

  // Nodes.
  ValuePtr op(std::string_view name, std::vector<ValuePtr> inputs, tf::Attrs attrs = {});
  ValuePtr constant(const List& values);  ///< i64, rank 1
  ValuePtr number_of(double value);       ///< f32, rank 0
  ValuePtr floats(const std::vector<float>& values, const Shape& shape);
  /// A function of single elements, in the order of axes that the operand has.
  ValuePtr map(const ValuePtr& x, const std::function<ValueId(ValueId)>& function);
  ValuePtr binary(std::string_view name, const ValuePtr& a, const ValuePtr& b) { return op(name, {a, b}); }
  ValuePtr activate(const ValuePtr& x, Json activation);
  ValuePtr as_float(const ValuePtr& x);

  // Results.
  void out(ValueId id) { outputs_.push_back({tf::plain_value(id), mask_}); }
  void out_first(ValueId id);
  void out(ValuePtr value) { outputs_.push_back({std::move(value), mask_}); }
  void keep_mask() { mask_ = inputs_.empty() ? nullptr : inputs_.front().mask; }
  void set_mask(ValuePtr mask) { mask_ = std::move(mask); }
  std::vector<Tensor> take_outputs() { return std::move(outputs_); }
  /// The type that the results have in Keras, where the layer's policy does not say so: of operations.
  void set_declared(DType declared) { declared_ = declared; }
  DType declared();

  void corrupt(std::string_view problem) { b().fail(Code::kCorrupt, problem); }
  void unsupported(std::string_view problem) { b().fail(Code::kUnsupported, problem); }
  bool failed() { return b().error().has_value(); }

 private:
  Shared& shared_;
  const std::string class_;
  const Json config_;
  const std::string folder_;
  std::vector<Tensor> inputs_;
  const Call call_;
  ValuePtr mask_;
  std::optional<DType> declared_;
  std::vector<Tensor> outputs_;
};

/// Attributes of TensorFlow's nodes.
tf::Attr attr(const List& values);
tf::Attr attr(int64_t value);
tf::Attr attr(double value);
tf::Attr attr(std::string_view text);  ///< which must outlive the node's import

struct LayerRow {
  std::string_view name;  ///< of the class
  void (*import)(Layer& layer);
};

/// Null if the class is not supported. `module`: "keras.layers", "keras.src.ops.numpy".
const LayerRow* find_layer(std::string_view module, std::string_view class_name);
/// Whether the class is of keras.ops: then its arguments are in the call.
bool is_operation(std::string_view module);

// The families, one file each.
std::span<const LayerRow> attention_layers();
std::span<const LayerRow> convolution_layers();
std::span<const LayerRow> core_layers();
std::span<const LayerRow> lookup_layers();
std::span<const LayerRow> movement_layers();
std::span<const LayerRow> norm_layers();
std::span<const LayerRow> operations();
std::span<const LayerRow> pooling_layers();
std::span<const LayerRow> recurrent_layers();

}  // namespace serin::formats::keras
