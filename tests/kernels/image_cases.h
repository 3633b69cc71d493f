// image_cases.h: resizing, transposed convolution and sampling of images, for whoever computes them: each function calls match(case, tolerance) with many of
// them.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/harness.h"

namespace serin::kernels::test::images {

using Integers = std::vector<int64_t>;

inline Tensor absent() { return {DType::kUndefined, Shape{0}}; }

inline Case resize(const std::string& mode, const std::string& coordinates, const Shape& x, int64_t height, int64_t width,
                   bool antialias = false) {
  Generic op{"Resize", {}};
  op.attributes.set("mode", mode);
  op.attributes.set("coordinate_transformation_mode", coordinates);
  op.attributes.set("axes", Integers{-2, -1});
  op.attributes.set("antialias", int64_t{antialias});
  Shape y = x;
  y[x.rank() - 2] = height, y[x.rank() - 1] = width;
  const Tensor sizes({2}, Integers{height, width});
  return {.op = op, .inputs = {random_tensor(x, 1), absent(), absent(), sizes}, .outputs = {{kF32, y}}};
}

template <class F>
void for_resizes(F&& match) {
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    for (const std::string coordinates : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}) {
      SCOPED_TRACE(mode + " " + coordinates);
      match(resize(mode, coordinates, {2, 3, 5, 7}, 10, 14), Tolerance{1e-5, 1e-6});
      match(resize(mode, coordinates, {1, 2, 9, 33}, 4, 70), Tolerance{1e-5, 1e-6});
      match(resize(mode, coordinates, {3, 8, 16}, 8, 16), Tolerance{1e-5, 1e-6});
      match(resize(mode, coordinates, {6, 5}, 6, 1), Tolerance{1e-5, 1e-6});
      match(resize(mode, coordinates, {1, 1}, 3, 17), Tolerance{1e-5, 1e-6});
    }
  }
  match(resize("linear", "half_pixel", {2, 21, 40}, 6, 11, true), Tolerance{1e-5, 1e-6});
  match(resize("cubic", "half_pixel", {2, 21, 40}, 30, 11, true), Tolerance{1e-5, 1e-6});
}

/// The two axes before the last one, which has the elements of a pixel; then the first axes of many, and one axis alone.
template <class F>
void for_pixels(F&& match, DType dtype = kF32, Tolerance tolerance = {1e-5, 1e-6}) {
  const auto check = [&](const std::string& mode, const std::string& coordinates, bool antialias, const Shape& x, const Shape& y) {
    Generic op{"Resize", {}};
    op.attributes.set("mode", mode);
    op.attributes.set("coordinate_transformation_mode", coordinates);
    op.attributes.set("antialias", int64_t{antialias});
    const Tensor sizes({static_cast<int64_t>(y.rank())}, Integers(y.begin(), y.end()));
    const Tensor images = dtype == kF32 ? random_tensor(x, 1) : random_integers(dtype, x, 1, dtype == DType::kUInt8 ? 0 : -128, 127);
    match(Case{.op = op, .inputs = {images, absent(), absent(), sizes}, .outputs = {{dtype, y}}}, tolerance);
  };
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    for (const std::string coordinates : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"}) {
      SCOPED_TRACE(mode + " " + coordinates);
      for (const int64_t pixel : {1, 2, 3, 8, 17, 64}) {
        check(mode, coordinates, false, {2, 5, 7, pixel}, {2, 10, 14, pixel});
        check(mode, coordinates, false, {1, 9, 13, pixel}, {1, 4, 40, pixel});
      }
      check(mode, coordinates, false, {1, 7, 11, 3}, {1, 90, 5, 3});  // more rows than one strip
      check(mode, coordinates, false, {4, 5, 3, 2, 2}, {8, 7, 3, 2, 2});
      check(mode, coordinates, false, {6, 4, 5}, {9, 4, 5});
      check(mode, coordinates, false, {2, 6, 4, 5}, {2, 3, 4, 5});
    }
  }
  for (const std::string mode : {"linear", "cubic"}) {
    check(mode, "half_pixel", true, {1, 21, 40, 3}, {1, 6, 11, 3});
    check(mode, "half_pixel", true, {1, 21, 40, 16}, {1, 30, 11, 16});
  }
}

struct Deconvolution {
  Shape x, weight;
  Integers strides, dilations, pads;
  int64_t group, extra;  // extra: output_padding at the end of each axis
};

inline Case deconvolution(const Deconvolution& d, bool bias) {
  Generic op{"ConvTranspose", {}};
  Shape y{d.x[0], d.weight[1] * d.group};
  const size_t axes = d.strides.size();
  for (size_t i = 0; i < axes; ++i)
    y.push_back((d.x[i + 2] - 1) * d.strides[i] + (d.weight[i + 2] - 1) * d.dilations[i] + 1 - d.pads[i] - d.pads[i + axes] + d.extra);
  op.attributes.set("kernel_shape", Integers(d.weight.begin() + 2, d.weight.end()));
  op.attributes.set("strides", d.strides);
  op.attributes.set("dilations", d.dilations);
  op.attributes.set("pads", d.pads);
  op.attributes.set("group", d.group);
  Case c{.op = op, .inputs = {random_tensor(d.x, 1), random_tensor(d.weight, 2)}, .outputs = {{kF32, y}}};
  if (bias) c.inputs.push_back(random_tensor({y[1]}, 3));
  return c;
}

template <class F>
void for_deconvolutions(F&& match) {
  const Deconvolution cases[] = {
      {{1, 4, 5, 6}, {4, 3, 2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, 1, 0},
      {{2, 4, 7, 9}, {4, 5, 4, 4}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 1, 0},
      {{1, 6, 8, 8}, {6, 2, 3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 2, 1},
      {{1, 3, 4, 17}, {3, 2, 3, 5}, {1, 3}, {2, 1}, {2, 0, 0, 4}, 1, 0},
      {{2, 8, 33}, {8, 4, 5}, {2}, {1}, {2, 1}, 1, 1},
      {{1, 16, 1, 1}, {16, 40, 4, 4}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1, 0},
      {{1, 2, 3, 3}, {2, 1, 1, 1}, {3, 3}, {1, 1}, {0, 0, 0, 0}, 2, 2},
      {{1, 5, 2, 3, 9}, {5, 3, 2, 2, 2}, {2, 2, 2}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}, 1, 0},
      {{2, 6, 3, 4, 5}, {6, 2, 3, 2, 4}, {2, 1, 3}, {1, 2, 1}, {1, 0, 2, 1, 1, 0}, 2, 1},
  };
  for (const Deconvolution& d : cases) {
    for (const uint32_t constants : {0u, 0b10u}) {
      Case c = deconvolution(d, constants == 0);
      c.constants = constants;
      SCOPED_TRACE(c.str());
      match(c, Tolerance{1e-4, 1e-5});
    }
  }
}

/// Points on the edges, far outside, at NaN, and everywhere in between.
inline Tensor grid(const Shape& shape) {
  Tensor points = random_tensor(shape, 5, 0.8f);
  const float rare[] = {-1, 1, 0, 1.5f, -3, 1e30f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
  for (size_t i = 0; i < std::size(rare) && static_cast<int64_t>(7 * i) < shape.elements(); ++i) points.view().as<float>()[7 * i] = rare[i];
  return points;
}

template <class F>
void for_grids(F&& match) {
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    for (const std::string padding : {"zeros", "border", "reflection"}) {
      for (const int64_t align : {0, 1}) {
        Generic op{"GridSample", {}};
        op.attributes.set("mode", mode);
        op.attributes.set("padding_mode", padding);
        op.attributes.set("align_corners", align);
        SCOPED_TRACE(mode + " " + padding);
        const auto match_grid = [&](const Shape& x, const Shape& points, const Shape& y) {
          match(Case{.op = op, .inputs = {random_tensor(x, 1), grid(points)}, .outputs = {{kF32, y}}}, Tolerance{1e-5, 1e-6});
        };
        match_grid({2, 3, 9, 7}, {2, 17, 18, 2}, {2, 3, 17, 18});  // more points than a tile
        match_grid({1, 2, 1, 1}, {1, 3, 5, 2}, {1, 2, 3, 5});
        match_grid({2, 3, 4, 5, 6}, {2, 3, 4, 7, 3}, {2, 3, 3, 4, 7});
        match_grid({1, 2, 4, 4}, {1, 0, 5, 2}, {1, 2, 0, 5});
      }
    }
  }
}

}  // namespace serin::kernels::test::images
