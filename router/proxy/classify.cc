#include "router/proxy/classify.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "runtime/base/number.h"
#include "runtime/base/utf8.h"
#include "runtime/protocol/oip/oip_rest.h"

namespace serin::router {
namespace {

using rollout::Slice;

/// Of UTF-8: control characters from U+0080 to U+009F, ends of lines and of paragraphs, and marks that turn the direction of the text.
bool has_controls(std::string_view text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    const auto byte = [&](size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
    if (byte(i) == 0xc2 && byte(i + 1) < 0xa0) return true;
    if (byte(i) != 0xe2) continue;
    if (byte(i + 1) == 0x80 && byte(i + 2) >= 0xa8 && byte(i + 2) <= 0xae) return true;
    if (byte(i + 1) == 0x81 && byte(i + 2) >= 0xa6 && byte(i + 2) <= 0xa9) return true;
  }
  return false;
}

bool is_class(std::string_view text) {
  constexpr size_t kLongest = 64;
  const auto bad = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '"' || c == '\'' || c == '\\'; };
  return !text.empty() && text.size() <= kLongest && std::ranges::none_of(text, bad) && is_utf8(text) && !has_controls(text);
}

/// 5000 between 4096 and 65536: "4096-65535".
std::string size_class(const std::vector<uint64_t>& bounds, uint64_t size) {
  const auto above = std::ranges::upper_bound(bounds, size);
  const uint64_t from = above == bounds.begin() ? 0 : *(above - 1);
  return above == bounds.end() ? fmt::format("{}+", from) : fmt::format("{}-{}", from, *above - 1);
}

/// The JSON part of the body; empty: it is not here, or compressed.
std::string_view json_part(const Classified& request) {
  if (!request.complete || request.headers.has("content-encoding")) return {};
  const std::string_view length = request.headers.get(protocol::kJsonLength);
  if (length.empty()) return request.body;
  const auto bytes = parse_number<uint64_t>(length);
  return bytes && *bytes <= request.body.size() ? request.body.substr(0, static_cast<size_t>(*bytes)) : std::string_view();
}

std::string class_of(const Slice& slice, const Classified& request, protocol::JsonPointerReader& json) {
  switch (slice.by) {
    case Slice::By::kHeader: return std::string(request.headers.get(slice.key));
    case Slice::By::kJson: return json.read(json_part(request), slice.key);
    case Slice::By::kBytes: {
      const auto size = request.complete ? std::optional<uint64_t>(request.body.size()) : request.length;
      return size ? size_class(slice.bounds, *size) : "";
    }
    case Slice::By::kLabel: break;
  }
  return "";
}

}  // namespace

bool reads_body(const std::vector<Slice>& slices) {
  return std::ranges::any_of(slices, [](const Slice& slice) { return slice.by == Slice::By::kJson; });
}

rollout::Classes classify(const std::vector<Slice>& slices, const Classified& request, protocol::JsonPointerReader& json) {
  if (slices.empty()) return nullptr;
  auto classes = std::make_shared<std::vector<std::string>>();
  for (const Slice& slice : slices) {
    std::string text = class_of(slice, request, json);
    classes->push_back(is_class(text) ? std::move(text) : std::string());
  }
  return classes;
}

rollout::Classes with_label(const rollout::Classes& classes, const std::vector<Slice>& slices,
                            const std::optional<rollout::Difference>& difference) {
  const auto by_label = std::ranges::find(slices, Slice::By::kLabel, &Slice::by);
  if (!classes || !difference || by_label == slices.end()) return classes;
  auto with = std::make_shared<std::vector<std::string>>(*classes);
  with->at(static_cast<size_t>(by_label - slices.begin())) = fmt::to_string(difference->stable_label);
  return with;
}

}  // namespace serin::router
