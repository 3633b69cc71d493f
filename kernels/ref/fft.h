// fft.h: The discrete Fourier transform of any length in O(n log n), in double.
//
// Powers of two use the iterative radix-2 algorithm. Other lengths use Bluestein's: n k = (n^2 + k^2 - (k - n)^2) / 2 turns the transform
// into a convolution with a chirp, computed by transforms of a power of two.
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
  int64_t padded_;               // the power of two to transform
  std::vector<Complex> roots_;   // exp(-2 pi i k / padded), half of them
  std::vector<Complex> chirp_;   // exp(-pi i n^2 / length); empty if length is a power of two
  std::vector<Complex> kernel_;  // the transform of the conjugate chirp
};

/// The transform of real numbers, of an even length: a transform of half as many complex numbers, each made of two adjacent ones.
class RealFft {
 public:
  explicit RealFft(int64_t length);
  /// x: `length` numbers, with imaginary parts ignored; afterwards their whole spectrum.
  void run(std::span<std::complex<double>> x) const;

 private:
  Fft half_;
  std::vector<std::complex<double>> roots_;  // exp(-2 pi i k / length), half of them plus one
};

}  // namespace serin::kernels::ref
