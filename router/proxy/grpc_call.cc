#include "router/proxy/grpc_call.h"

#include <algorithm>
#include <array>

#include "runtime/base/number.h"
#include "runtime/base/wire_writer.h"

namespace serin::router {
namespace {

using net::GrpcPrefix;

constexpr std::array kMethods = {ModelMethod{"/inference.GRPCInferenceService/ModelInfer", Naming::kFields, true},
                                 ModelMethod{"/inference.GRPCInferenceService/ModelStreamInfer", Naming::kFields, true, true},
                                 ModelMethod{"/inference.GRPCInferenceService/ModelReady"},
                                 ModelMethod{"/inference.GRPCInferenceService/ModelMetadata"},
                                 ModelMethod{"/inference.GRPCInferenceService/ModelConfig"},
                                 ModelMethod{"/inference.GRPCInferenceService/ModelStatistics"},
                                 ModelMethod{"/tensorflow.serving.PredictionService/Predict", Naming::kSpec, true},
                                 ModelMethod{"/tensorflow.serving.PredictionService/Classify", Naming::kSpec, true},
                                 ModelMethod{"/tensorflow.serving.PredictionService/Regress", Naming::kSpec, true},
                                 ModelMethod{"/tensorflow.serving.PredictionService/GetModelMetadata", Naming::kSpec},
                                 ModelMethod{"/tensorflow.serving.ModelService/GetModelStatus", Naming::kSpec}};
constexpr uint32_t kNameField = 1, kVersionField = 2;  // model_name and model_version (name and version) in all messages of kFields
constexpr uint32_t kSpecField = 1;                     // model_spec in all messages of kSpec
constexpr uint32_t kSpecName = kNameField, kSpecVersion = 2, kSpecLabel = 4;
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

/// A ModelSpec. Of its version and its label, which are one field (oneof), the last one counts, so neither is written that the path does not name.
std::string spec_of(std::string_view model, std::string_view path) {
  constexpr std::string_view kVersions = "/versions/", kLabels = "/labels/";
  std::string spec;
  wire::write_bytes(spec, kSpecName, model);
  const auto version = path.starts_with(kVersions) ? parse_number<uint64_t>(path.substr(kVersions.size())) : std::nullopt;
  if (version) {
    std::string value;  // an Int64Value, with its number also where that is 0
    wire::write_tag(value, 1, 0);
    wire::write_varint(value, *version);
    wire::write_bytes(spec, kSpecVersion, value);
  }
  if (path.starts_with(kLabels)) wire::write_bytes(spec, kSpecLabel, path.substr(kLabels.size()));
  return spec;
}

/// The next field that has that number and is a text or a message. False: the reader has ended, or there is none.
bool find_field(Reader& reader, uint32_t number, uint64_t& size) {
  while (!reader.bytes.empty()) {
    const uint64_t tag = reader.varint();
    const uint64_t kind = tag & 7, field = tag >> 3;
    if (kind == 0) reader.varint();
    if (kind == 1) reader.skip(8);
    if (kind == 5) reader.skip(4);
    if (kind != 0 && kind != 1 && kind != 2 && kind != 5) reader.fail(reader.broken);
    if (reader.ended() || kind != 2) continue;
    size = reader.varint();
    if (reader.ended()) return false;
    if (field == number) return true;
    reader.skip(size);
  }
  return false;
}

Error bad(std::string what) { return {Code::kInvalidArgument, std::move(what)}; }

/// Nothing: it has none, or `reader` says why it has ended.
Result<std::optional<std::string>> name_in(Reader& reader) {
  uint64_t size = 0;
  if (!find_field(reader, kNameField, size)) return std::nullopt;
  if (size > kLongestName) return bad("the name of the model is longer than 128 bytes");
  if (size <= reader.bytes.size()) return std::optional(std::string(reader.bytes.substr(0, size)));
  reader.fail(reader.short_of);
  return std::nullopt;
}

/// Of the first ModelSpec that has one.
Result<std::optional<std::string>> name_in_spec(Reader& reader) {
  uint64_t size = 0;
  while (find_field(reader, kSpecField, size)) {
    Reader spec{reader.bytes.substr(0, size)};
    SERIN_TRY(auto name, name_in(spec));
    if (name) return name;
    reader.skip(size);
    if (spec.broken || (spec.short_of && !reader.short_of)) reader.fail(reader.broken);
  }
  return std::nullopt;
}

}  // namespace

const ModelMethod* find_model_method(std::string_view path) {
  const auto found = std::ranges::find(kMethods, path, &ModelMethod::path);
  return found == kMethods.end() ? nullptr : &*found;
}

Result<std::optional<std::string>> model_named_in(Naming naming, std::string_view body, bool complete) {
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
  SERIN_TRY(auto name, naming == Naming::kSpec ? name_in_spec(reader) : name_in(reader));
  if (name) return name;
  if (reader.broken || (whole && reader.short_of)) return bad("the message is not what protobuf writes");
  if (!whole && !complete && body.size() < kFarthest) return std::nullopt;
  return bad("the message names no model, or not within its first 64 KiB");
}

std::string naming_fields(Naming naming, std::string_view model, std::string_view path) {
  constexpr std::string_view kModels = "/v2/models/", kOlder = "/v1/models/", kVersions = "/versions/";
  const bool has_model = path.starts_with(kModels) || (naming == Naming::kSpec && path.starts_with(kOlder));
  path.remove_prefix(has_model ? kModels.size() : path.size());
  const size_t slash = std::min(path.find('/'), path.size());
  const std::string_view name = has_model ? path.substr(0, slash) : model, rest = path.substr(slash);
  std::string fields;
  if (naming == Naming::kSpec) {
    wire::write_bytes(fields, kSpecField, spec_of(name, rest));
    return fields;
  }
  wire::write_bytes(fields, kNameField, name);
  if (has_model) wire::write_bytes(fields, kVersionField, rest.starts_with(kVersions) ? rest.substr(kVersions.size()) : std::string_view());
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
