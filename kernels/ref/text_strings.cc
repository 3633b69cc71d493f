// text_strings.cc: StringConcat and StringSplit.

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "kernels/indexing.h"
#include "kernels/ref/text_families.h"

namespace serin::kernels::ref {

namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string_view trim_left(std::string_view text) {
  const auto first = std::find_if_not(text.begin(), text.end(), is_space);
  return text.substr(static_cast<size_t>(first - text.begin()));
}

std::string_view trim_right(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Between runs of white space, none at the ends; after `limit` splits the rest is one part.
std::vector<std::string_view> split_at_spaces(std::string_view text, size_t limit) {
  std::vector<std::string_view> parts;
  for (text = trim_left(text); !text.empty(); text = trim_left(text)) {
    if (parts.size() == limit) {
      parts.push_back(trim_right(text));
      break;
    }
    const auto end = static_cast<size_t>(std::find_if(text.begin(), text.end(), is_space) - text.begin());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

/// At each delimiter; neighbouring ones delimit an empty part. An empty text has no parts.
std::vector<std::string_view> split_at(std::string_view text, std::string_view delimiter, size_t limit) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  while (parts.size() < limit) {
    const size_t at = text.find(delimiter);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + delimiter.size());
  }
  parts.push_back(text);
  return parts;
}

}  // namespace

/// Letters of ASCII; the bytes of others stay.
Prepared change_case(const GenericDesc& desc, std::string& why) {
  if (desc.inputs[0].dtype != DType::kString || desc.outputs[0].dtype != DType::kString) return refuse(why, "strings go in and out");
  const std::string to = desc.attributes.text("to", "LOWER");
  if (to != "LOWER" && to != "UPPER") return refuse(why, "to is '" + to + "', it must be LOWER or UPPER");
  return make_kernel([first = to == "LOWER" ? 'A' : 'a'](Stream&, Inputs in, Outputs out) -> Fault {
    auto* y = out[0].as<std::string>();
    for (const std::string& text : strings_of(in[0])) {
      *y = text;
      for (char& c : *y)
        if (c >= first && c < first + 26) c = static_cast<char>(c ^ 0x20);
      ++y;
    }
    return kOk;
  });
}

Prepared string_concat(const GenericDesc& desc, std::string& why) {
  for (const TensorDesc& each : desc.inputs) {
    if (each.dtype != DType::kString) return refuse(why, "operands must be strings");
  }
  return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
    const Shape& shape = out[0].shape;
    const auto a = strings_of(in[0]), b = strings_of(in[1]);
    const auto y = out[0].span<std::string>();
    for_each<2>(shape, {broadcast_strides(in[0].shape, shape), broadcast_strides(in[1].shape, shape)}, [&](int64_t i, const auto& at) {
      y[static_cast<size_t>(i)] = a[static_cast<size_t>(at[0])] + b[static_cast<size_t>(at[1])];
    });
    return kOk;
  });
}

/// x [...] -> parts [..., most], filled up with empty strings, and the number of parts [...]. The output is described with a bound on
/// `most`. With `width` there are just as many places, and parts behind them are counted only.
Prepared string_split(const GenericDesc& desc, std::string& why) {
  if (desc.inputs[0].dtype != DType::kString) return refuse(why, "the operand must be strings");
  const std::string delimiter = desc.attributes.text("delimiter", "");
  const int64_t given = desc.attributes.integer("maxsplit", -1);
  const size_t limit = given < 0 ? std::numeric_limits<size_t>::max() : static_cast<size_t>(given);
  const int64_t width = desc.attributes.integer("width", -1);
  return make_kernel([=](Stream&, Inputs in, Outputs out) -> Fault {
    const auto x = strings_of(in[0]);
    std::vector<std::vector<std::string_view>> parts;
    size_t most = 0;
    for (const std::string& text : x) {
      parts.push_back(delimiter.empty() ? split_at_spaces(text, limit) : split_at(text, delimiter, limit));
      most = std::max(most, parts.back().size());
    }
    if (width >= 0) most = static_cast<size_t>(width);
    Shape shape = in[0].shape;
    shape.push_back(static_cast<int64_t>(most));
    if (shape.elements() > out[0].elements()) return "the output is too small for " + std::to_string(most) + " parts";
    out[0].shape = shape;
    const auto y = out[0].span<std::string>();
    for (size_t i = 0; i < parts.size(); ++i) {
      for (size_t k = 0; k < most; ++k) y[i * most + k] = k < parts[i].size() ? std::string(parts[i][k]) : std::string();
      if (out.size() > 1 && out[1].data) out[1].as<int64_t>()[i] = static_cast<int64_t>(parts[i].size());
    }
    return kOk;
  });
}

}  // namespace serin::kernels::ref
