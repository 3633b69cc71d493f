#include "router/proxy/grpc_call.h"

#include <algorithm>
#include <array>

namespace serin::router {
namespace {

using net::GrpcPrefix;

constexpr std::string_view kService = "/inference.GRPCInferenceService/";
constexpr std::array<ModelMethod, 6> kMethods = {{{"ModelInfer", true, false},
                                                  {"ModelStreamInfer", true, true},
                                                  {"ModelReady"},
                                                  {"ModelMetadata"},
                                                  {"ModelConfig"},
                                                  {"ModelStatistics"}}};
constexpr uint32_t kNameField = 1, kVersionField = 2;  // model_name and model_version (name and version) in all of their messages
constexpr size_t kLongestName = 128;
constexpr size_t kFarthest = 64 << 10;  // every writer puts the name first; whoever does not is not waited for

/// Reads what protobuf writes; `short_of`: it ended in the middle.
struct Reader {
  std::string_view bytes;
  bool short_of = false, broken = false;

  uint64_t varint() {
    constexpr int kMostBits = 63;
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      if (bytes.empty()) return fail(short_of);
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
      if (shift == kMostBits) return fail(broken);
    }
  }
  void skip(uint64_t size) {
    if (size > bytes.size()) fail(short_of);
    bytes.remove_prefix(static_cast<size_t>(std::min<uint64_t>(size, bytes.size())));
  }
  uint64_t fail(bool& how) {
    how = true;
    bytes = {};
    return 0;
  }
  bool ended() const { return short_of || broken; }
};

void append_text(uint32_t field, std::string_view text, std::string& out) {
  constexpr uint32_t kText = 2;
  out.push_back(static_cast<char>(field << 3 | kText));
  size_t size = text.size();
  for (; size >= 0x80; size >>= 7) out.push_back(static_cast<char>(size | 0x80));
  out.push_back(static_cast<char>(size));
  out.append(text);
}

Error bad(std::string what) { return {Code::kInvalidArgument, std::move(what)}; }

}  // namespace

const ModelMethod* find_model_method(std::string_view path) {
  if (!path.starts_with(kService)) return nullptr;
  const auto found = std::ranges::find(kMethods, path.substr(kService.size()), &ModelMethod::path);
  return found == kMethods.end() ? nullptr : &*found;
}

Result<std::optional<std::string>> model_named_in(std::string_view body, bool complete) {
  if (body.size() < GrpcPrefix::kBytes) {
    if (complete) return bad("the call has no message");
    return std::nullopt;
  }
  const auto prefix = net::read_grpc_prefix(body);
  if (!prefix) return bad("the call does not begin with a message of gRPC");
  if (prefix->compressed) return bad("a compressed message cannot be routed by the model that it names; name it with x-serin-service");
  body.remove_prefix(GrpcPrefix::kBytes);
  const bool whole = body.size() >= prefix->length;
  Reader reader{body.substr(0, prefix->length)};
  while (!reader.bytes.empty()) {
    const uint64_t tag = reader.varint();
    const uint64_t kind = tag & 7, field = tag >> 3;
    if (kind == 0) reader.varint();
    if (kind == 1) reader.skip(8);
    if (kind == 5) reader.skip(4);
    if (kind != 0 && kind != 1 && kind != 2 && kind != 5) reader.fail(reader.broken);
    if (reader.ended() || kind != 2) continue;
    const uint64_t size = reader.varint();
    if (field != kNameField) {
      reader.skip(size);
      continue;
    }
    if (size > kLongestName) return bad("the name of the model is longer than 128 bytes");
    if (size <= reader.bytes.size() && !reader.ended()) return std::optional(std::string(reader.bytes.substr(0, size)));
    reader.fail(reader.short_of);
  }
  if (reader.broken || (whole && reader.short_of)) return bad("the message is not what protobuf writes");
  if (!whole && !complete && body.size() < kFarthest) return std::nullopt;
  return bad("the message names no model, or not within its first 64 KiB");
}

std::string naming_fields(std::string_view model, std::string_view path) {
  constexpr std::string_view kModels = "/v2/models/", kVersions = "/versions/";
  std::string fields;
  if (!path.starts_with(kModels)) {
    append_text(kNameField, model, fields);
    return fields;
  }
  path.remove_prefix(kModels.size());
  const size_t slash = std::min(path.find('/'), path.size());
  append_text(kNameField, path.substr(0, slash), fields);
  path.remove_prefix(slash);
  append_text(kVersionField, path.starts_with(kVersions) ? path.substr(kVersions.size()) : std::string_view(), fields);
  return fields;
}

void MessageNamer::begin(std::string fields) {
  fields_ = std::move(fields);
  prefix_.clear();
  left_ = 0;
}

void MessageNamer::begin_message(net::Buffer& out) {
  const uint32_t length = net::grpc_length(prefix_);
  const bool fits = length <= ~uint32_t{0} - fields_.size();
  named_ = prefix_[0] == 0 && fits;
  // Nobody takes four gigabytes; what follows must not be read as another message all the same.
  left_ = fits ? length : ~uint64_t{0};
  std::string prefix = prefix_;
  if (named_) {
    prefix.clear();
    net::append_grpc_prefix({.length = static_cast<uint32_t>(length + fields_.size())}, prefix);
  }
  out.append(prefix);
}

void MessageNamer::feed(std::string_view bytes, net::Buffer& out) {
  while (!bytes.empty()) {
    if (prefix_.size() < GrpcPrefix::kBytes) {
      const size_t more = std::min(GrpcPrefix::kBytes - prefix_.size(), bytes.size());
      prefix_.append(bytes.substr(0, more));
      bytes.remove_prefix(more);
      if (prefix_.size() < GrpcPrefix::kBytes) return;
      begin_message(out);
    }
    const size_t more = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
    out.append(bytes.substr(0, more));
    bytes.remove_prefix(more);
    left_ -= more;
    if (left_ > 0) return;
    if (named_) out.append(fields_);
    prefix_.clear();
  }
}

}  // namespace serin::router
