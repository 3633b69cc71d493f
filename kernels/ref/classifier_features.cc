// classifier_features.cc: operators of ai.onnx.ml that change features one by one or a row at a time.

#include <cmath>
#include <vector>

#include "kernels/ref/classifier_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

/// x [..., c], indices [k] -> [..., k] (a list becomes one row)
Prepared array_feature_extractor(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  if (desc.inputs[0].shape.rank() == 0) return refuse(why, "the input has no axis to choose from");
  return for_sizes(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
      const int64_t width = in[0].shape.back(), rows = product(in[0].shape, 0, in[0].shape.rank() - 1);
      const std::vector<double> chosen = numbers_of(in[1]);
      T* y = out[0].as<T>();
      for (const double index : chosen) {
        if (index < 0 || index >= static_cast<double>(width)) {
          return "index " + std::to_string(static_cast<int64_t>(index)) + " is not one of " + std::to_string(width) + " features";
        }
      }
      for (int64_t row = 0; row < rows; ++row) {
        for (const double index : chosen) *y++ = in[0].as<const T>()[row * width + static_cast<int64_t>(index)];
      }
      return kOk;
    });
  });
}

Prepared binarizer(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  const double threshold = desc.attributes.number("threshold", 0);
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([threshold](Stream&, Inputs in, Outputs out) -> Fault {
      const auto x = in[0].span<const T>();
      for (size_t i = 0; i < x.size(); ++i) out[0].as<T>()[i] = kernels::cast<T>(static_cast<double>(load(x[i])) > threshold ? 1 : 0);
      return kOk;
    });
  });
}

/// Rows side by side: each operand is cut, or filled up with zeros, to the width that inputdimensions gives it.
Prepared feature_vectorizer(const GenericDesc& desc, std::string& why) {
  const std::vector<int64_t> widths = desc.attributes.integers("inputdimensions");
  if (widths.size() != desc.inputs.size()) return refuse(why, "inputdimensions must have one number for each operand");
  return for_floats(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([widths](Stream&, Inputs in, Outputs out) -> Fault {
      const int64_t rows = out[0].shape[0], width = out[0].shape[1];
      std::fill_n(out[0].as<T>(), rows * width, kernels::cast<T>(0));
      int64_t begin = 0;
      for (size_t k = 0; k < in.size(); begin += widths[k++]) {
        const int64_t given = rows == 0 ? 0 : in[k].elements() / rows;
        const std::vector<double> x = numbers_of(in[k]);
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t i = 0; i < std::min(given, widths[k]); ++i) {
            out[0].as<T>()[row * width + begin + i] = kernels::cast<T>(x[static_cast<size_t>(row * given + i)]);
          }
        }
      }
      return kOk;
    });
  });
}

/// Replaces one value (which may be NaN) by another, or by one for each feature (column of the last axis).
Prepared imputer(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    constexpr bool kFloats = kIsFloatKind<T>;
    std::vector<T> imputed;
    if constexpr (kFloats) {
      for (const double value : desc.attributes.numbers("imputed_value_floats")) imputed.push_back(kernels::cast<T>(value));
    } else {
      for (const int64_t value : desc.attributes.integers("imputed_value_int64s")) imputed.push_back(static_cast<T>(value));
    }
    const auto width = static_cast<size_t>(desc.inputs[0].shape.rank() == 0 ? 1 : desc.inputs[0].shape.back());
    if (imputed.size() != 1 && imputed.size() != width) return refuse(why, "needs one imputed value, or one for each feature");
    T replaced{};
    if constexpr (kFloats)
      replaced = kernels::cast<T>(desc.attributes.number("replaced_value_float", 0));
    else
      replaced = static_cast<T>(desc.attributes.integer("replaced_value_int64", 0));
    return make_kernel([imputed, replaced](Stream&, Inputs in, Outputs out) -> Fault {
      const auto x = in[0].span<const T>();
      const auto target = load(replaced);
      for (size_t i = 0; i < x.size(); ++i) {
        const auto value = load(x[i]);
        const bool replace = value == target || (value != value && target != target);
        out[0].as<T>()[i] = replace ? imputed[imputed.size() == 1 ? 0 : i % imputed.size()] : x[i];
      }
      return kOk;
    });
  });
}

namespace {

enum class RowNorm : uint8_t { kMax, kL1, kL2 };

std::optional<RowNorm> row_norm_of(const std::string& name) {
  if (name == "MAX") return RowNorm::kMax;
  if (name == "L1") return RowNorm::kL1;
  if (name == "L2") return RowNorm::kL2;
  return std::nullopt;
}

}  // namespace

/// Rows divided by their largest element or their norm; a row whose divisor is 0 stays.
Prepared normalizer(const GenericDesc& desc, std::string& why) {
  const std::string name = desc.attributes.text("norm", "MAX");
  const auto norm = row_norm_of(name);
  if (!norm) return refuse(why, "norm is '" + name + "', it must be MAX, L1 or L2");
  const size_t rank = desc.inputs[0].shape.rank();
  if (rank == 0) return refuse(why, "the input has no axis");
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([norm = *norm, axis = rank == 1 ? size_t{0} : size_t{1}](Stream&, Inputs in, Outputs out) -> Fault {
      const AxisSpan span(in[0].shape, axis);
      span.for_each_line([&](int64_t first) {
        const auto at = [&](int64_t i) { return static_cast<double>(load(in[0].as<const T>()[first + i * span.inner])); };
        double divisor = norm == RowNorm::kMax && span.size > 0 ? at(0) : 0;
        for (int64_t i = 0; i < span.size; ++i) {
          const double x = at(i);
          divisor = norm == RowNorm::kMax ? std::max(divisor, x) : divisor + (norm == RowNorm::kL1 ? std::fabs(x) : x * x);
        }
        if (norm == RowNorm::kL2) divisor = std::sqrt(divisor);
        for (int64_t i = 0; i < span.size; ++i) {
          out[0].as<float>()[first + i * span.inner] = static_cast<float>(divisor != 0 ? at(i) / divisor : at(i));
        }
      });
      return kOk;
    });
  });
}

/// (x - offset) * scale; one of each, or one for each feature.
Prepared scaler(const GenericDesc& desc, std::string& why) {
  const std::vector<double> offsets = desc.attributes.numbers("offset"), scales = desc.attributes.numbers("scale");
  const auto width = static_cast<size_t>(desc.inputs[0].shape.rank() == 0 ? 1 : desc.inputs[0].shape.back());
  for (const auto& each : {offsets, scales}) {
    if (each.size() != 1 && each.size() != width) return refuse(why, "offset and scale need one number, or one for each feature");
  }
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([offsets, scales](Stream&, Inputs in, Outputs out) -> Fault {
      const auto x = in[0].span<const T>();
      for (size_t i = 0; i < x.size(); ++i) {
        const double offset = offsets[offsets.size() == 1 ? 0 : i % offsets.size()],
                     scale = scales[scales.size() == 1 ? 0 : i % scales.size()];
        out[0].as<float>()[i] = static_cast<float>((static_cast<double>(load(x[i])) - offset) * scale);
      }
      return kOk;
    });
  });
}

}  // namespace serin::kernels::ref
