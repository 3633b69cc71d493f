// answer_json.cc: appends to one text, as the codecs of runtime/protocol do.

#include "runtime/steps/vision/answer_json.h"

#include <cmath>

#include "runtime/protocol/json/json_write.h"

namespace serin::steps {
namespace {

void append_float(std::string& out, float value) {
  if (!std::isfinite(value))
    out += "null";
  else if (std::abs(value) < 1e9F && value == std::trunc(value))
    protocol::append_number(out, static_cast<int64_t>(value));
  else
    protocol::append_number(out, value);
}

void append_floats(std::string& out, std::initializer_list<float> values) {
  char before = '[';
  for (const float value : values) {
    out += before;
    append_float(out, value);
    before = ',';
  }
  out += ']';
}

/// [first, second ...] of what `append_one` writes.
template <class T, class AppendOne>
std::string list_as_json(std::span<const T> values, const AppendOne& append_one) {
  std::string out = "[";
  for (const T& value : values) {
    if (out.size() > 1) out += ',';
    append_one(out, value);
  }
  return out + "]";
}

}  // namespace

std::string detections_as_json(std::span<const Detection> detections, std::span<const std::string> labels) {
  return list_as_json(detections, [labels](std::string& out, const Detection& one) {
    out += R"({"bbox":)";
    append_floats(out, {one.x1, one.y1, one.x2 - one.x1, one.y2 - one.y1});
    out += R"(,"category_id":)";
    protocol::append_number(out, one.label);
    if (one.label >= 0 && static_cast<size_t>(one.label) < labels.size()) {
      out += R"(,"category":)";
      protocol::append_text(out, labels[static_cast<size_t>(one.label)]);
    }
    out += R"(,"score":)";
    append_float(out, one.score);
    out += '}';
  });
}

std::string texts_as_json(std::span<const TextLine> lines) {
  return list_as_json(lines, [](std::string& out, const TextLine& line) {
    out += R"({"confidence":)";
    append_float(out, line.reading.score);
    out += R"(,"text":)";
    protocol::append_text(out, line.reading.text);
    out += R"(,"text_region":)";
    char before = '[';
    for (const Point& point : line.box.points) {
      out += before;
      append_floats(out, {point.x, point.y});
      before = ',';
    }
    out += "]}";
  });
}

}  // namespace serin::steps
