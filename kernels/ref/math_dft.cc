// math_dft.cc: DFT and STFT: lines of a tensor through fft.h. The last axis holds real and imaginary part, or the real part alone.

#include <algorithm>
#include <complex>
#include <optional>
#include <span>
#include <vector>

#include "kernels/ref/fft.h"
#include "kernels/ref/math_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

using Complex = std::complex<double>;

template <class T>
Complex complex_at(const T* x, int64_t parts) {
  return {widen(x[0]), parts == 2 ? widen(x[1]) : 0.0};
}

template <class T>
void store(T* y, int64_t parts, Complex value) {
  y[0] = narrow<T>(value.real());
  if (parts == 2) y[1] = narrow<T>(value.imag());
}

/// Lines of one length, one after the other.
class Lines {
 public:
  Lines(int64_t length, int64_t parts, bool inverse) : inverse_(inverse) {
    if (parts == 1 && !inverse && length % 2 == 0)
      real_.emplace(length);
    else
      any_.emplace(length);
  }
  void run(std::span<Complex> line) const { real_ ? real_->run(line) : any_->run(line, inverse_); }

 private:
  const bool inverse_;
  std::optional<RealFft> real_;
  std::optional<Fft> any_;
};

struct DftOptions {
  bool inverse, onesided;
};

/// The length of the transform: given, or that of the axis; of a half spectrum, the even length that it is half of.
int64_t transform_length(const DftOptions& op, std::optional<int64_t> given, int64_t size) {
  if (given) return *given;
  return op.inverse && op.onesided ? 2 * (size - 1) : size;
}

/// x [..., n, ..., 1 or 2], dft_length?, axis? -> y [..., m, ..., 1 or 2]. Lines are cut or padded with zeros to the length; an inverse
/// transform of a half spectrum gets the other half from its symmetry.
template <class T>
Fault run_dft(const DftOptions& op, Inputs in, Outputs out) {
  const Shape &x = in[0].shape, &y = out[0].shape;
  const size_t rank = x.rank();
  const auto axis = resolve_axis(operand(in, 2) ? integer_of(&in[2]).value_or(-2) : -2, x);
  if (!axis || *axis + 1 == rank) return "axis is out of range for " + x.str();
  const AxisSpan from(x, *axis), to(y, *axis);
  const int64_t parts = x.back(), parts_out = y.back();
  const int64_t length = transform_length(op, integer_of(operand(in, 1)), from.size);
  if (length < 1) return "dft_length is " + std::to_string(length);
  if (to.size > length) return "the output does not have the shape that the operands ask for";

  const Lines lines(length, parts, op.inverse);
  std::vector<Complex> line(static_cast<size_t>(length));
  const int64_t used = std::min(from.size, op.inverse && op.onesided ? length / 2 + 1 : length);
  for (int64_t o = 0; o < from.outer; ++o) {
    for (int64_t j = 0; j < from.inner; j += parts) {
      const T* source = in[0].as<const T>() + o * from.size * from.inner + j;
      std::fill(line.begin(), line.end(), Complex());
      for (int64_t i = 0; i < used; ++i) line[static_cast<size_t>(i)] = complex_at(source + i * from.inner, parts);
      if (op.inverse && op.onesided) {
        for (int64_t i = length / 2 + 1; i < length; ++i) line[static_cast<size_t>(i)] = std::conj(line[static_cast<size_t>(length - i)]);
      }
      lines.run(line);
      T* target = out[0].as<T>() + o * to.size * to.inner + j / parts * parts_out;
      for (int64_t i = 0; i < to.size; ++i) store(target + i * to.inner, parts_out, line[static_cast<size_t>(i)]);
    }
  }
  return kOk;
}

/// signal [batch, n, 1 or 2], or [batch, n] as torch exports it; frame_step, window?, frame_length? -> [batch, frames, bins, 2]
template <class T>
Fault run_stft(Inputs in, Outputs out) {
  const Shape &x = in[0].shape, &y = out[0].shape;
  const int64_t parts = x.rank() == 3 ? x[2] : 1, frames = y[1], bins = y[2];
  const auto step = integer_of(operand(in, 1));
  const TensorView* window = operand(in, 2);
  const int64_t length = integer_of(operand(in, 3)).value_or(window ? window->elements() : x[1]);
  if (!step || *step < 1) return "frame_step must be at least 1";
  if (length < 1 || bins > length) return "frame_length is " + std::to_string(length);
  if (frames > 0 && (frames - 1) > (x[1] - length) / *step) return "the output has more frames than the signal";
  const int64_t weights = window ? window->elements() : length;

  const Lines lines(length, parts, /*inverse=*/false);
  std::vector<Complex> line(static_cast<size_t>(length));
  for (int64_t i = 0; i < y[0] * frames; ++i) {
    const T* frame = in[0].as<const T>() + (i / frames * x[1] + i % frames * *step) * parts;
    for (int64_t k = 0; k < length; ++k) {
      const double weight = k >= weights ? 0.0 : window ? widen(window->as<const T>()[k]) : 1.0;
      line[static_cast<size_t>(k)] = complex_at(frame + k * parts, parts) * weight;
    }
    lines.run(line);
    for (int64_t k = 0; k < bins; ++k) store(out[0].as<T>() + (i * bins + k) * 2, 2, line[static_cast<size_t>(k)]);
  }
  return kOk;
}

}  // namespace

Prepared dft(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  const Shape& x = desc.inputs[0].shape;
  if (x.rank() < 2 || x.back() < 1 || x.back() > 2) return refuse(why, "the last axis must hold 1 or 2 parts, shape is " + x.str());
  const DftOptions op{desc.attributes.integer("inverse", 0) != 0, desc.attributes.integer("onesided", 0) != 0};
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run_dft<T>(op, in, out); });
  });
}

Prepared stft(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1) || (desc.has(2) && desc.inputs[2].dtype != desc.inputs[0].dtype)) return refuse_mixed(why);
  const Shape& x = desc.inputs[0].shape;
  if (x.rank() != 2 && (x.rank() != 3 || x.back() < 1 || x.back() > 2))
    return refuse(why, "the signal must be [batch, n, 1 or 2] or [batch, n], shape is " + x.str());
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault { return run_stft<T>(in, out); });
  });
}

}  // namespace serin::kernels::ref
