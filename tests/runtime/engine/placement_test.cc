// Placement: which copies a program over two memories needs, and no others.

#include "runtime/engine/layout/placement.h"

#include <gtest/gtest.h>

#include "runtime/engine/program/verify_program.h"

namespace serin::engine {
namespace {

/// Programs by hand: tensors of four floats, steps that read some and write one.
class Sketch {
 public:
  TensorId tensor(std::string name) {
    program.tensors.push_back({.name = std::move(name), .dtype = DType::kFloat32, .shape = {4}});
    return static_cast<TensorId>(program.tensors.size()) - 1;
  }
  TensorId view(std::string name, TensorId base, Shape shape, size_t offset = 0) {
    program.tensors.push_back({.name = std::move(name), .dtype = DType::kFloat32, .shape = shape, .base = base, .offset = offset});
    return static_cast<TensorId>(program.tensors.size()) - 1;
  }
  TensorId constant(std::string name) {
    const float values[4] = {1, 2, 3, 4};
    const TensorId id = tensor(std::move(name));
    program.tensor(id).constant = graph::make_constant(DType::kFloat32, Shape{4}, values);
    return id;
  }
  TensorId input(std::string name) {
    program.inputs.push_back(tensor(std::move(name)));
    return program.inputs.back();
  }
  void step(bool device, std::vector<TensorId> inputs, TensorId output) {
    program.steps.push_back(
        {.node = program.tensor(output).name, .kernel = kernels::Binary{}, .inputs = std::move(inputs), .outputs = {output}});
    on_device.push_back(device);
  }

  /// "x>d" copies x to the device, "x>h" to the host, "x:copy" is a copy of the host's, "y" a step of the host, "y*" one of the device.
  std::string placed() {
    const std::vector<int> origin = place(program, on_device);
    EXPECT_EQ(origin.size(), program.steps.size());
    const Status verified = verify(program);
    EXPECT_TRUE(verified) << (verified ? "" : verified.error().message);
    std::string text;
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const Step& s = program.steps[i];
      const auto* transfer = std::get_if<kernels::Transfer>(&s.kernel);
      const bool device = origin[i] >= 0 && on_device[static_cast<size_t>(origin[i])];
      if (!text.empty()) text += ' ';
      text += s.node + (transfer ? (transfer->to_device ? ">d" : ">h") : origin[i] < 0 ? ":copy" : device ? "*" : "");
      for (const TensorId id : s.inputs) expect_memory(id, transfer ? !transfer->to_device : device);
      for (const TensorId id : s.outputs) expect_memory(id, transfer ? transfer->to_device : device);
    }
    return text;
  }

  Program program;
  std::vector<bool> on_device;

 private:
  void expect_memory(TensorId id, bool device) {
    EXPECT_EQ(program.tensor(program.root(id).first).memory, device ? Memory::kDevice : Memory::kHost) << program.tensor(id).name;
    EXPECT_EQ(program.tensor(id).memory, device ? Memory::kDevice : Memory::kHost) << program.tensor(id).name;
  }
};

TEST(Placement, WholeProgramsCopyInputsAndOutputsOnly) {
  Sketch s;
  const TensorId x = s.input("x"), w = s.constant("w"), a = s.tensor("a"), b = s.tensor("b");
  s.step(true, {x, w}, a);
  s.step(true, {a, w}, b);
  s.program.outputs = {b};
  EXPECT_EQ(s.placed(), "x:copy x>d a* b* b>h b:copy");
  EXPECT_EQ(std::ranges::count_if(s.program.tensors, [](const engine::Tensor& t) { return t.constant && t.memory == Memory::kDevice; }), 1);
}

TEST(Placement, AHostStepBetweenCostsTwoCopies) {
  Sketch s;
  const TensorId x = s.input("x"), a = s.tensor("a"), b = s.tensor("b"), c = s.tensor("c"), d = s.tensor("d");
  s.step(true, {x, x}, a);
  s.step(false, {a, a}, b);
  s.step(true, {b, a}, c);
  s.step(true, {b, c}, d);
  s.program.outputs = {d};
  EXPECT_EQ(s.placed(), "x:copy x>d a* a>h b b>d c* d* d>h d:copy");
}

TEST(Placement, NothingOnTheDeviceStaysAsItIs) {
  Sketch s;
  const TensorId x = s.input("x"), a = s.tensor("a");
  s.step(false, {x, x}, a);
  s.program.outputs = {a};
  EXPECT_EQ(s.placed(), "a");
}

TEST(Placement, ViewsAreCopiedOnceWhateverTheirShape) {
  Sketch s;
  const TensorId x = s.input("x"), a = s.tensor("a");
  const TensorId square = s.view("square", a, {2, 2}), flat = s.view("flat", a, {4, 1}), half = s.view("half", a, {2}, 8);
  const TensorId b = s.tensor("b"), c = s.tensor("c"), d = s.tensor("d");
  s.program.tensor(b).shape = {2, 2}, s.program.tensor(c).shape = {4, 1}, s.program.tensor(d).shape = {2};
  s.step(false, {x, x}, a);
  s.step(true, {square, square}, b);
  s.step(true, {flat, flat}, c);
  s.step(true, {half, half}, d);
  s.program.outputs = {b, c, d};
  EXPECT_EQ(s.placed(), "a square>d b* b>h c* c>h half>d d* d>h b:copy c:copy d:copy");
}

TEST(Placement, PartsWrittenByBothMeetOnTheHost) {
  Sketch s;
  const TensorId x = s.input("x"), whole = s.tensor("whole"), y = s.tensor("y");
  const TensorId left = s.view("left", whole, {2}), right = s.view("right", whole, {2}, 8), half = s.view("half", x, {2});
  s.step(true, {half, half}, left);
  s.step(false, {half, half}, right);
  s.step(true, {left, left}, s.tensor("z"));
  s.program.tensor(s.program.steps.back().outputs[0]).shape = {2};
  s.step(false, {whole, whole}, y);
  s.program.outputs = {y};
  EXPECT_EQ(s.placed(), "half:copy half>d left* left>h right z* y");
}

/// So all that runs on the device is one recording.
TEST(Placement, CallersTensorsAreCopiedFirstAndLast) {
  Sketch s;
  const TensorId x = s.input("x"), y = s.input("y"), a = s.tensor("a"), b = s.tensor("b");
  s.step(true, {x, x}, a);
  s.step(true, {a, y}, b);
  s.program.outputs = {a, b};
  EXPECT_EQ(s.placed(), "x:copy y:copy x>d a* a>h y>d b* b>h a:copy b:copy");
  ASSERT_EQ(s.program.staged.size(), 4u);
  for (const auto& [callers, copy] : s.program.staged) {
    EXPECT_TRUE(callers == x || callers == y || callers == a || callers == b);
    EXPECT_EQ(s.program.tensor(copy).name, s.program.tensor(callers).name);
  }
}

TEST(Placement, AnOutputThatTheHostReadsIsCopiedBefore) {
  Sketch s;
  const TensorId x = s.input("x"), a = s.tensor("a"), b = s.tensor("b"), c = s.tensor("c");
  s.step(true, {x, x}, a);
  s.step(true, {a, a}, b);
  s.step(false, {a, a}, c);
  s.program.outputs = {a, b, c};
  EXPECT_EQ(s.placed(), "x:copy x>d a* a>h b* b>h a:copy c b:copy");
}

/// Its halves come from either side; what the host writes is not overwritten by what the device wrote before.
TEST(Placement, AnOutputThatTheHostWritesToIsCopiedBefore) {
  Sketch s;
  const TensorId x = s.input("x"), whole = s.tensor("whole"), half = s.view("half", whole, {2}), part = s.view("part", x, {2});
  s.step(true, {x, x}, whole);
  s.step(false, {part, part}, half);
  s.program.outputs = {whole};
  EXPECT_EQ(s.placed(), "x:copy x>d whole* whole>h whole:copy half");
}

/// Only a part of an input goes to the device: the caller cannot put the whole there.
TEST(Placement, PartsAreNotStaged) {
  Sketch s;
  const TensorId x = s.input("x"), half = s.view("half", x, {2}), a = s.tensor("a");
  s.program.tensor(a).shape = {2};
  s.step(true, {half, half}, a);
  s.program.outputs = {a};
  EXPECT_EQ(s.placed(), "half:copy half>d a* a>h a:copy");
  ASSERT_EQ(s.program.staged.size(), 1u);
  EXPECT_EQ(s.program.staged[0].first, a);
}

TEST(Placement, IslandsStayOnTheHost) {
  Sketch s;
  const TensorId x = s.input("x"), w = s.constant("w"), a = s.tensor("a"), b = s.tensor("b"), c = s.tensor("c"), d = s.tensor("d");
  s.step(false, {x, x}, a);
  s.step(true, {a, w}, b);  // a size, say
  s.step(false, {b, x}, c);
  s.step(true, {c, x}, d);
  s.program.outputs = {d};
  keep_islands_on_host(s.program, s.on_device);
  EXPECT_EQ(s.on_device, (std::vector<bool>{false, false, false, true}));
}

}  // namespace
}  // namespace serin::engine
