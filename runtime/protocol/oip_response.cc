// oip_response.cc: an answer read back, for whoever compares two of them.

#include <fmt/format.h>

#include <string_view>

#include "runtime/protocol/answer_json.h"
#include "runtime/protocol/oip_rest.h"

namespace serin::protocol {
namespace {

namespace dom = simdjson::dom;

// Bare NaN and Infinity are no JSON, but servers write them. They become zeros of the same length, and the answer is known not to be finite.
bool blank_non_finite(std::string& text) {
  bool found = false, in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        in_string = false;
      continue;
    }
    if (text[i] == '"') in_string = true;
    for (const std::string_view token : {std::string_view("NaN"), std::string_view("Infinity")}) {
      if (text.compare(i, token.size(), token) != 0) continue;
      text.replace(i, token.size(), "0" + std::string(token.size() - 1, ' '));
      found = true;
    }
  }
  return found;
}

Error corrupt(std::string_view what) { return Error{Code::kCorrupt, fmt::format("not an inference answer: {}", what)}; }

}  // namespace

Result<Document> parse_answer_json(std::string& body, bool& finite) {
  auto document = parse_json(body, 100);
  if (!document && blank_non_finite(body)) {
    finite = false;
    document = parse_json(body, 100);
  }
  if (!document) return corrupt(document.error().message);
  return document;
}

Status read_shape(const dom::array& shape, OutputValues& output) {
  if (!Shape::fits(shape.size())) return corrupt("an output's shape has too many dimensions");
  for (const dom::element dim : shape) {
    int64_t value = 0;
    if (dim.get(value) || value < 0) return corrupt("an output's shape is not a list of numbers");
    output.shape.push_back(value);
  }
  return {};
}

Status read_elements(const dom::array& data, OutputValues& output) {
  output.values.reserve(data.size());
  for (const dom::element value : data) {
    double number = 0;
    bool truth = false;
    if (!value.get(truth))
      number = truth ? 1 : 0;
    else if (value.get(number))
      return corrupt("an output's data is not a flat list of numbers");
    output.values.push_back(number);
  }
  if (output.shape.checked_elements() != static_cast<int64_t>(output.values.size()))
    return corrupt(fmt::format("output '{}' has {} elements for shape {}", output.name, output.values.size(), output.shape.str()));
  return {};
}

Result<OutputValues> read_output_head(const dom::element& element) {
  OutputValues output;
  std::string_view name, datatype;
  dom::array shape;
  if (element["name"].get(name) || element["datatype"].get(datatype) || element["shape"].get(shape))
    return corrupt("an output lacks name, datatype or shape");
  output.name = name;
  output.datatype = datatype;
  SERIN_CHECK(read_shape(shape, output));
  return output;
}

Status read_output_data(const dom::element& element, OutputValues& output) {
  dom::array data;
  if (element["data"].get(data)) return corrupt("an output lacks data");
  if (output.datatype == "BYTES") return {};
  return read_elements(data, output);
}

Result<std::vector<OutputValues>> decode_infer_response(std::string body) {
  bool finite = true;
  SERIN_TRY(const Document document, parse_answer_json(body, finite));
  dom::array list;
  if (document.root["outputs"].get(list)) return corrupt("no list 'outputs'");
  std::vector<OutputValues> outputs;
  for (const dom::element element : list) {
    SERIN_TRY(OutputValues output, read_output_head(element));
    SERIN_CHECK(read_output_data(element, output));
    output.finite = finite;
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace serin::protocol
