// classifier_encoders.cc: LabelEncoder and OneHotEncoder: from a finite set of keys to values.
//
// A LabelEncoder has its keys in one of keys_strings, keys_int64s, keys_floats, its values in one of values_*, and default_* for what is
// not a key. With `two_way` (LabelEncoder before version 2, CategoryMapper) strings go to integers and integers to strings, whatever comes
// in.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernels/ref/classifier_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

/// Where each key is. The first of equal ones counts.
class KeyIndex {
 public:
  void add(const std::string& key) { strings_.emplace(key, size_++); }
  void add(int64_t key) { integers_.emplace(key, size_++); }
  void add(double key) {
    if (std::isnan(key)) {
      if (!nan_) nan_ = size_;
      ++size_;
    } else {
      floats_.emplace(key, size_++);
    }
  }

  std::optional<size_t> find(const std::string& key) const { return find_in(strings_, key); }
  std::optional<size_t> find(int64_t key) const { return find_in(integers_, key); }
  std::optional<size_t> find(double key) const { return std::isnan(key) ? nan_ : find_in(floats_, key); }
  size_t size() const { return size_; }

 private:
  template <class Map, class Key>
  static std::optional<size_t> find_in(const Map& map, const Key& key) {
    const auto found = map.find(key);
    return found == map.end() ? std::nullopt : std::optional(found->second);
  }

  size_t size_ = 0;
  std::unordered_map<std::string, size_t> strings_;
  std::unordered_map<int64_t, size_t> integers_;
  std::unordered_map<double, size_t> floats_;
  std::optional<size_t> nan_;
};

/// An element type, and how its keys are looked up.
template <class T>
auto key_of(const T& x) {
  if constexpr (std::is_same_v<T, std::string>)
    return x;
  else if constexpr (kIsFloatKind<T>)
    return static_cast<double>(load(x));
  else
    return static_cast<int64_t>(x);
}

template <class F>
auto visit_label(DType dtype, F&& f) {
  return dtype == DType::kString ? f(Element<std::string>{}) : visit_dtype(dtype, std::forward<F>(f));
}

template <class T>
auto attribute_values(const Attributes& attributes, const std::string& prefix) {
  if constexpr (std::is_same_v<T, std::string>)
    return attributes.texts(prefix + "_strings");
  else if constexpr (kIsFloatKind<T>)
    return attributes.numbers(prefix + "_floats");
  else
    return attributes.integers(prefix + "_int64s");
}

template <class T>
T default_of(const Attributes& attributes) {
  if constexpr (std::is_same_v<T, std::string>)
    return attributes.text("default_string", "_Unused");
  else if constexpr (kIsFloatKind<T>)
    return kernels::cast<T>(attributes.number("default_float", -0.0));
  else
    return static_cast<T>(attributes.integer("default_int64", -1));
}

/// The values, with the default after the last one.
template <class T>
std::vector<T> values_of(const Attributes& attributes, const std::string& prefix) {
  std::vector<T> values;
  for (const auto& each : attribute_values<T>(attributes, prefix)) {
    if constexpr (std::is_same_v<T, std::string>)
      values.push_back(each);
    else
      values.push_back(kernels::cast<T>(each));
  }
  values.push_back(default_of<T>(attributes));
  return values;
}

constexpr size_t kBlock = 256;  // elements that are looked up at once

/// Places of the keys of a block that begins at element `first`; what is not a key is at `index.size()`.
using Find = void (*)(const KeyIndex& index, const TensorView& in, size_t first, std::span<size_t> places);
/// Writes results of a block.
using Pick = std::function<void(std::span<const size_t> places, TensorView& out, size_t first)>;

template <class S>
void find_keys(const KeyIndex& index, const TensorView& in, size_t first, std::span<size_t> places) {
  const auto x = in.span<const S>();
  for (size_t i = 0; i < places.size(); ++i) places[i] = index.find(key_of(x[first + i])).value_or(index.size());
}

template <class D>
Pick pick_from(std::vector<D> results) {
  return [results = std::move(results)](std::span<const size_t> places, TensorView& out, size_t first) {
    for (size_t i = 0; i < places.size(); ++i) out.as<D>()[first + i] = results[places[i]];
  };
}

}  // namespace

// Keys and values have types of their own; each pair of them as one loop would be 196 loops.
Prepared label_encoder(const GenericDesc& desc, std::string& why) {
  const bool reversed = desc.attributes.integer("two_way", 0) != 0 && desc.inputs[0].dtype != DType::kString;
  KeyIndex index;
  Find find = nullptr;
  visit_label(desc.inputs[0].dtype, [&]<class S>(Element<S>) {
    if constexpr (!std::is_void_v<S>) {
      for (const auto& key : attribute_values<S>(desc.attributes, reversed ? "values" : "keys")) index.add(key);
      find = find_keys<S>;
    }
  });
  Pick pick;
  size_t values = 0;
  visit_label(desc.outputs[0].dtype, [&]<class D>(Element<D>) {
    if constexpr (!std::is_void_v<D>) {
      std::vector<D> results = values_of<D>(desc.attributes, reversed ? "keys" : "values");
      values = results.size() - 1;
      pick = pick_from(std::move(results));
    }
  });
  if (!find || !pick) return refuse(why, "no labels of these types");
  if (values != index.size()) return refuse(why, "has " + std::to_string(index.size()) + " keys and " + std::to_string(values) + " values");
  return make_kernel([index = std::move(index), find, pick = std::move(pick)](Stream&, Inputs in, Outputs out) -> Fault {
    std::array<size_t, kBlock> room;
    const size_t count = static_cast<size_t>(out[0].elements());
    for (size_t first = 0; first < count; first += kBlock) {
      const std::span<size_t> places(room.data(), std::min(kBlock, count - first));
      find(index, in[0], first, places);
      pick(places, out[0], first);
    }
    return kOk;
  });
}

/// x [...] -> f32 [..., categories]
Prepared one_hot_encoder(const GenericDesc& desc, std::string& why) {
  const bool zeros = desc.attributes.integer("zeros", 1) != 0;
  auto index = std::make_shared<KeyIndex>();
  for (const std::string& key : desc.attributes.texts("cats_strings")) index->add(key);
  for (const int64_t key : desc.attributes.integers("cats_int64s")) index->add(key);
  return visit_label(desc.inputs[0].dtype, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_void_v<T>) {
      return refuse_dtype(why, desc.inputs[0].dtype);
    } else {
      return make_kernel([zeros, index](Stream&, Inputs in, Outputs out) -> Fault {
        const auto x = in[0].span<const T>();
        float* y = out[0].as<float>();
        std::fill_n(y, out[0].elements(), 0.f);
        for (size_t i = 0; i < x.size(); ++i) {
          std::optional<size_t> place;
          if constexpr (std::is_same_v<T, std::string>)
            place = index->find(x[i]);
          else
            place = index->find(kernels::cast<int64_t>(x[i]));
          if (place)
            y[i * index->size() + *place] = 1;
          else if (!zeros)
            return "element " + std::to_string(i) + " is not one of the categories";
        }
        return kOk;
      });
    }
  });
}

}  // namespace serin::kernels::ref
