// fft.h: the discrete Fourier transform of any length in O(n log n), in double.
//
// Powers of two by the iterative radix-2 algorithm. Other lengths by Bluestein's: n k = (n^2 + k^2 - (k - n)^2) / 2 turns the transform
// into a convolution with a chirp, which is done by transforms of a power of two.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

namespace serin::kernels::ref {

class Fft {
 public:
  /// Requires length >= 1.
  explicit Fft(int64_t length);

  int64_t length() const { return length_; }
  /// x.size() == length(). X[k] = sum(x[n] exp(-2 pi i k n / length)); `inverse`: with exp(+...) and divided by the length.
  void run(std::span<std::complex<double>> x, bool inverse) const;

 private:
  using Complex = std::complex<double>;
  void radix2(std::span<Complex> x) const;
  void bluestein(std::span<Complex> x) const;

  int64_t length_;
  int64_t padded_;               // the power of two that is transformed
  std::vector<Complex> roots_;   // exp(-2 pi i k / padded), half of them
  std::vector<Complex> chirp_;   // exp(-pi i n^2 / length); empty where length is a power of two
  std::vector<Complex> kernel_;  // the transform of the conjugate chirp
};

/// The transform of real numbers, of an even length: that of half as many complex ones, each of two neighbours.
class RealFft {
 public:
  explicit RealFft(int64_t length);
  /// x: `length` numbers whose imaginary parts are not looked at; their whole spectrum afterwards.
  void run(std::span<std::complex<double>> x) const;

 private:
  Fft half_;
  std::vector<std::complex<double>> roots_;  // exp(-2 pi i k / length), half of them and one
};

}  // namespace serin::kernels::ref
