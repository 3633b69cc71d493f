// fft.cc: the fast Fourier transform of fft.h.

#include "kernels/ref/fft.h"

#include <algorithm>
#include <bit>
#include <numbers>

namespace serin::kernels::ref {

namespace {

using Complex = std::complex<double>;

/// exp(-2 pi i numerator / denominator)
Complex root(int64_t numerator, int64_t denominator) {
  return std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator));
}

}  // namespace

Fft::Fft(int64_t length) : length_(length) {
  const auto n = static_cast<uint64_t>(length);
  const bool power_of_two = std::has_single_bit(n);
  padded_ = static_cast<int64_t>(power_of_two ? n : std::bit_ceil(2 * n - 1));
  for (int64_t k = 0; k < std::max<int64_t>(1, padded_ / 2); ++k) roots_.push_back(root(k, padded_));
  if (power_of_two) return;

  uint64_t square = 0;  // n^2 modulo 2 * length: exact angles for any length
  kernel_.assign(static_cast<size_t>(padded_), Complex());
  for (size_t i = 0; i < n; ++i) {
    chirp_.push_back(root(static_cast<int64_t>(square), 2 * length));
    kernel_[i] = std::conj(chirp_[i]);
    if (i > 0) kernel_[static_cast<size_t>(padded_) - i] = kernel_[i];
    square = (square + 2 * i + 1) % (2 * n);
  }
  radix2(kernel_);
}

void Fft::radix2(std::span<Complex> x) const {
  const size_t n = x.size();
  for (size_t i = 1, reversed = 0; i < n; ++i) {  // bit-reversed order
    size_t bit = n >> 1;
    for (; reversed & bit; bit >>= 1) reversed ^= bit;
    reversed ^= bit;
    if (i < reversed) std::swap(x[i], x[reversed]);
  }
  if (n == 2) {
    const Complex sum = x[0] + x[1];
    x[1] = x[0] - x[1], x[0] = sum;
  }
  for (size_t block = 0; block + 4 <= n; block += 4) {  // the first two rounds, whose roots are 1 and -i
    Complex* const y = &x[block];
    const Complex a = y[0] + y[1], b = y[0] - y[1], c = y[2] + y[3], d = y[2] - y[3];
    const Complex turned(d.imag(), -d.real());
    y[0] = a + c, y[1] = b + turned, y[2] = a - c, y[3] = b - turned;
  }
  for (size_t half = 4; half < n; half *= 2) {
    const size_t step = n / (2 * half);
    for (size_t block = 0; block < n; block += 2 * half) {
      for (size_t k = 0; k < half; ++k) {
        const Complex &w = roots_[k * step], odd = x[block + k + half];
        const Complex turned(odd.real() * w.real() - odd.imag() * w.imag(), odd.real() * w.imag() + odd.imag() * w.real());
        x[block + k + half] = x[block + k] - turned;
        x[block + k] += turned;
      }
    }
  }
}

void Fft::bluestein(std::span<Complex> x) const {
  std::vector<Complex> work(static_cast<size_t>(padded_));
  for (size_t i = 0; i < x.size(); ++i) work[i] = x[i] * chirp_[i];
  radix2(work);
  for (size_t i = 0; i < work.size(); ++i) work[i] = std::conj(work[i] * kernel_[i]);  // conjugated twice: the way back
  radix2(work);
  const double scale = 1.0 / static_cast<double>(padded_);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::conj(work[i]) * scale * chirp_[i];
}

void Fft::run(std::span<Complex> x, bool inverse) const {
  if (inverse) {
    for (Complex& each : x) each = std::conj(each);
  }
  if (chirp_.empty())
    radix2(x);
  else
    bluestein(x);
  if (!inverse) return;
  const double scale = 1.0 / static_cast<double>(length_);
  for (Complex& each : x) each = std::conj(each) * scale;
}

RealFft::RealFft(int64_t length) : half_(length / 2) {
  for (int64_t k = 0; k <= length / 2; ++k) roots_.push_back(root(k, length));
}

void RealFft::run(std::span<Complex> x) const {
  const auto half = static_cast<size_t>(half_.length());
  for (size_t i = 0; i < half; ++i) x[i] = Complex(x[2 * i].real(), x[2 * i + 1].real());
  half_.run(x.first(half), false);
  x[half] = x[0];
  // The spectra of the even and the odd elements are the symmetric and the antisymmetric part of what came out.
  for (size_t k = 0; k <= half / 2; ++k) {
    const Complex low = x[k], high = std::conj(x[half - k]);
    const Complex even = 0.5 * (low + high), odd(0.5 * (low.imag() - high.imag()), -0.5 * (low.real() - high.real()));
    const Complex& w = roots_[k];
    const Complex turned(odd.real() * w.real() - odd.imag() * w.imag(), odd.real() * w.imag() + odd.imag() * w.real());
    x[k] = even + turned;
    x[half - k] = std::conj(even - turned);
  }
  for (size_t k = half + 1; k < x.size(); ++k) x[k] = std::conj(x[x.size() - k]);
}

}  // namespace serin::kernels::ref
