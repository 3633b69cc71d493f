// A struct that is described once, and what is made of that: JSON, JSON Schema and TypeScript.

#include "runtime/base/schema.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "runtime/base/schema_json.h"
#include "runtime/base/schema_text.h"

namespace serin::schema {
namespace {

enum class Arm : uint8_t { kStable, kCanary };
constexpr std::string_view kArms[] = {"stable", "canary"};
constexpr std::span<const std::string_view> words_of(Arm) { return kArms; }

struct Point {
  std::chrono::milliseconds at{0};
  Arm arm = Arm::kStable;
  double x = 0, y = 0, z = 0;
};
constexpr auto kPoint = object<Point>("Point", "A place.", field("at_ms", &Point::at, "When."), field("arm", &Point::arm, "Whose."),
                                      field("x", &Point::x, "", {.digits = 4}), field("y", &Point::y, "", {.decimals = 2}),
                                      field("z", &Point::z, "As it is.", {.least = 0, .most = 1}));
constexpr auto kWholePoint = with_every_digit(kPoint);

struct Line {
  std::string name;
  bool straight = true;
  int step = -1;
  uint32_t count = 7;
  std::optional<double> length;
  std::optional<std::string> colour;
  std::vector<Point> points;
  std::array<double, 3> weights{};
  std::optional<Point> centre;
};
constexpr std::string_view kColours[] = {"red", "green"};
constexpr auto kLine = object<Line>(
    "Line", "Places in a row.", field("name", &Line::name, "Says \"who\"."), field("straight", &Line::straight, ""),
    field("step", &Line::step, ""), field("count", &Line::count, "", {.most = 1'000'000}),
    field("length", &Line::length, "null: endless.", {.decimals = 1}),
    field("colour", &Line::colour, "", {.may_be_absent = true, .words = kColours}), field<kPoint>("points", &Line::points, "In order."),
    field("weights", &Line::weights, "", {.digits = 3}), field<kPoint>("centre", &Line::centre, "null: none."));

struct Named : Point {
  std::string_view name = "here";
};
constexpr auto kNamed = extended<Named>("Named", "A place with a name.", kPoint, field("name", &Named::name, ""));

TEST(SchemaJson, WritesMembersInTheirOrder) {
  EXPECT_EQ(to_json(kLine, {.name = "a \"b\""}),
            R"({"name":"a \"b\"","straight":true,"step":-1,"count":7,"length":null,"points":[],"weights":[0,0,0],"centre":null})");
  EXPECT_EQ(to_json(kLine, {.straight = false,
                            .step = std::numeric_limits<int>::min(),
                            .count = 4'294'967'295,
                            .length = 1.25,
                            .colour = "red",
                            .points = {{}, {.at = std::chrono::milliseconds(5), .arm = Arm::kCanary, .x = 1.23456, .y = 1, .z = 0.1}},
                            .weights = {1234.5, 1e-9, 2},
                            .centre = Point{.z = 1.0 / 3}}),
            R"({"name":"","straight":false,"step":-2147483648,"count":4294967295,"length":1.2,"colour":"red",)"
            R"("points":[{"at_ms":0,"arm":"stable","x":0,"y":0.00,"z":0},{"at_ms":5,"arm":"canary","x":1.235,"y":1.00,"z":0.1}],)"
            R"("weights":[1.23e+03,1e-09,2],"centre":{"at_ms":0,"arm":"stable","x":0,"y":0.00,"z":0.3333333333333333}})");
}

TEST(SchemaJson, WritesZeroForWhatIsNoNumber) {
  EXPECT_EQ(to_json(kPoint, {.x = std::numeric_limits<double>::quiet_NaN(),
                             .y = std::numeric_limits<double>::infinity(),
                             .z = -std::numeric_limits<double>::infinity()}),
            R"({"at_ms":0,"arm":"stable","x":0,"y":0.00,"z":0})");
}

TEST(SchemaJson, TheSameStructInTwoForms) {
  EXPECT_EQ(to_json(kWholePoint, {.x = 1.23456789, .y = 2.5}), R"({"at_ms":0,"arm":"stable","x":1.23456789,"y":2.5,"z":0})");
  EXPECT_EQ(to_json(kNamed, {}), R"({"name":"here","at_ms":0,"arm":"stable","x":0,"y":0.00,"z":0})");
}

TEST(SchemaText, IsJsonSchema) {
  EXPECT_EQ(json_schema(components(kLine, kPoint, kNamed), "  "),
            R"(  "Line": {
    "type": "object",
    "description": "Places in a row.",
    "required": ["name", "straight", "step", "count", "length", "points", "weights", "centre"],
    "properties": {
      "name": {"type": "string", "description": "Says \"who\"."},
      "straight": {"type": "boolean"},
      "step": {"type": "integer"},
      "count": {"type": "integer", "minimum": 0, "maximum": 1000000},
      "length": {"type": ["number", "null"], "description": "null: endless."},
      "colour": {"enum": ["red", "green"]},
      "points": {"type": "array", "items": {"$ref": "#/components/schemas/Point"}, "description": "In order."},
      "weights": {"type": "array", "items": {"type": "number"}},
      "centre": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Point"}], "description": "null: none."}
    }
  },
  "Point": {
    "type": "object",
    "description": "A place.",
    "required": ["at_ms", "arm", "x", "y", "z"],
    "properties": {
      "at_ms": {"type": "integer", "description": "When."},
      "arm": {"enum": ["stable", "canary"], "description": "Whose."},
      "x": {"type": "number"},
      "y": {"type": "number"},
      "z": {"type": "number", "minimum": 0, "maximum": 1, "description": "As it is."}
    }
  },
  "Named": {
    "type": "object",
    "description": "A place with a name.",
    "required": ["name", "at_ms", "arm", "x", "y", "z"],
    "properties": {
      "name": {"type": "string"},
      "at_ms": {"type": "integer", "description": "When."},
      "arm": {"enum": ["stable", "canary"], "description": "Whose."},
      "x": {"type": "number"},
      "y": {"type": "number"},
      "z": {"type": "number", "minimum": 0, "maximum": 1, "description": "As it is."}
    }
  })");
}

TEST(SchemaText, IsTypeScript) {
  EXPECT_EQ(typescript(components(kLine)),
            R"(/** Places in a row. */
export interface Line {
  name: string; // Says "who".
  straight: boolean;
  step: number;
  count: number;
  length: number | null; // null: endless.
  colour?: "red" | "green";
  points: Point[]; // In order.
  weights: number[];
  centre: Point | null; // null: none.
}

/** A place. */
export interface Point {
  at_ms: number; // When.
  arm: "stable" | "canary"; // Whose.
  x: number;
  y: number;
  z: number; // As it is.
}
)");
}

}  // namespace
}  // namespace serin::schema
