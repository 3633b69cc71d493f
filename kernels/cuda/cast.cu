// cast.cu: Cast. Pairs of types that models cast often have kernels, which move memory and do little else; all other pairs share one.

#include "kernels/cuda/dense.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;
using ref::visit_dtype;

template <class From, class To>
struct CastOf {
  bool saturates;
  __device__ To operator()(From x) const { return saturates ? saturate<To>(x) : cast<To>(x); }
};

/// Types that models cast often. Each pair of them has a kernel; all other pairs share one, which would otherwise be a hundred.
template <class T>
inline constexpr bool kIsCastOften = std::is_same_v<T, bool> || std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t> ||
                                     std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> || std::is_same_v<T, float> || kIsHalfKind<T>;

/// One element from one type to another. The value passes through the widest type of its kind, which holds it exactly.
struct AnyCast {
  DType from, to;
  bool saturates;

  __device__ void operator()(const void* x, void* y, int64_t i) const {
    switch (from) {
      case DType::kBool: return put<uint64_t>(at<bool>(x, i), y, i);
      case DType::kInt8: return put<int64_t>(at<int8_t>(x, i), y, i);
      case DType::kInt16: return put<int64_t>(at<int16_t>(x, i), y, i);
      case DType::kInt32: return put<int64_t>(at<int32_t>(x, i), y, i);
      case DType::kInt64: return put<int64_t>(at<int64_t>(x, i), y, i);
      case DType::kUInt8: return put<uint64_t>(at<uint8_t>(x, i), y, i);
      case DType::kUInt16: return put<uint64_t>(at<uint16_t>(x, i), y, i);
      case DType::kUInt32: return put<uint64_t>(at<uint32_t>(x, i), y, i);
      case DType::kUInt64: return put<uint64_t>(at<uint64_t>(x, i), y, i);
      case DType::kFloat16: return put<double>(to_float(at<Half>(x, i)), y, i);
      case DType::kBFloat16: return put<double>(to_float(at<BFloat16>(x, i)), y, i);
      case DType::kFloat32: return put<double>(at<float>(x, i), y, i);
      default: return put<double>(at<double>(x, i), y, i);
    }
  }

 private:
  template <class T>
  __device__ static T at(const void* x, int64_t i) {
    return static_cast<const T*>(x)[i];
  }
  template <class Wide>
  __device__ void put(Wide value, void* y, int64_t i) const {
    switch (to) {
      case DType::kBool: return put_as<bool>(value, y, i);
      case DType::kInt8: return put_as<int8_t>(value, y, i);
      case DType::kInt16: return put_as<int16_t>(value, y, i);
      case DType::kInt32: return put_as<int32_t>(value, y, i);
      case DType::kInt64: return put_as<int64_t>(value, y, i);
      case DType::kUInt8: return put_as<uint8_t>(value, y, i);
      case DType::kUInt16: return put_as<uint16_t>(value, y, i);
      case DType::kUInt32: return put_as<uint32_t>(value, y, i);
      case DType::kUInt64: return put_as<uint64_t>(value, y, i);
      case DType::kFloat16: return put_as<Half>(value, y, i);
      case DType::kBFloat16: return put_as<BFloat16>(value, y, i);
      case DType::kFloat32: return put_as<float>(value, y, i);
      default: return put_as<double>(value, y, i);
    }
  }
  template <class To, class Wide>
  __device__ void put_as(Wide value, void* y, int64_t i) const {
    static_cast<To*>(y)[i] = CastOf<Wide, To>{saturates}(value);
  }
};

__global__ void cast_any(AnyCast cast, const void* x, void* y, int64_t n) {
  for (int64_t i = first_element(); i < n; i += element_step()) cast(x, y, i);
}

Prepared any_cast(AnyCast cast) {
  return make_kernel([cast](Stream& stream, Inputs in, Outputs out) -> Fault {
    const int64_t n = in[0].elements();
    return launch(stream, {blocks_for(n, kBlockThreads), kBlockThreads}, cast_any, cast, in[0].as<const void>(), out[0].as<void>(), n);
  });
}

}  // namespace

Prepared prepare_cast(const OpDesc& desc, PrepareContext&, std::string& why) {
  const DType from = desc.inputs[0].dtype, to = desc.outputs[0].dtype;
  const bool saturates = std::get<Cast>(desc.op).saturate;
  return visit_dtype(from, [&]<class From>(Element<From>) -> Prepared {
    return visit_dtype(to, [&]<class To>(Element<To>) -> Prepared {
      if constexpr (std::is_void_v<From> || std::is_void_v<To>) {
        return refuse(why, "no kernel from " + std::string(dtype_name(from)) + " to " + std::string(dtype_name(to)));
      } else if constexpr (kIsCastOften<From> && kIsCastOften<To>) {
        return make_kernel([saturates](Stream& stream, Inputs in, Outputs out) -> Fault {
          return run_dense(stream, CastOf<From, To>{saturates}, in[0].as<const From>(), out[0].as<To>(), in[0].elements());
        });
      } else {
        return any_cast({from, to, saturates});
      }
    });
  });
}

}  // namespace serin::kernels::cuda
