#include "runtime/cli/release/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/base64.h"
#include "runtime/base/file.h"
#include "runtime/net/target.h"
#include "runtime/registry/sha256.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr size_t kMostRecords = 1 << 30;
constexpr std::string_view kFolder = ".releases";

/// The bytes that DSSE signs.
std::string signed_bytes(std::string_view payload) {
  return fmt::format("DSSEv1 {} {} {} {}", kPayloadType.size(), kPayloadType, payload.size(), payload);
}

const json::value* member(const json::value& value, std::string_view key) {
  return value.is_object() ? value.get_object().if_contains(key) : nullptr;
}

std::optional<std::string> text_member(const json::value& value, std::string_view key) {
  const json::value* found = member(value, key);
  return found && found->is_string() ? std::optional(std::string(found->get_string())) : std::nullopt;
}

struct Envelope {
  std::string payload;
  std::vector<std::pair<std::string, std::string>> signatures;  // of each key: its ID, the bytes
};

std::optional<Envelope> open_envelope(const std::string& line) {
  boost::system::error_code error;
  const json::value value = json::parse(line, error);
  const auto type = text_member(value, "payloadType"), payload = text_member(value, "payload");
  if (error || type != kPayloadType || !payload) return std::nullopt;
  auto decoded = decode_base64(*payload);
  if (!decoded) return std::nullopt;
  Envelope envelope{*std::move(decoded), {}};
  if (const json::value* signatures = member(value, "signatures"); signatures && signatures->is_array())
    for (const json::value& each : signatures->get_array()) {
      const auto id = text_member(each, "keyid"), text = text_member(each, "sig");
      const auto bytes = text ? decode_base64(*text) : std::nullopt;
      if (!id || !bytes) return std::nullopt;
      envelope.signatures.emplace_back(*id, *bytes);
    }
  return envelope;
}

Result<ReleaseRecord> read_line(const std::string& line, const std::string& before) {
  Error damaged{Code::kCorrupt, "is no record"};
  const auto envelope = open_envelope(line);
  if (!envelope) return damaged;
  boost::system::error_code error;
  const json::value statement = json::parse(envelope->payload, error);
  const json::value* predicate = error ? nullptr : member(statement, "predicate");
  if (!predicate || !predicate->is_object() || text_member(statement, "predicateType") != kPredicateType) return damaged;
  if (text_member(*predicate, "previous") != before) return Error{Code::kCorrupt, "does not follow the line before it"};
  ReleaseRecord record{line, registry::digest_of(line), statement.get_object(), {}};
  for (const auto& [id, bytes] : envelope->signatures) record.keys.push_back(id);
  return record;
}

}  // namespace

const json::object& ReleaseRecord::predicate() const { return statement.at("predicate").as_object(); }

std::string ReleaseRecord::text(std::string_view key) const {
  const json::value* found = predicate().if_contains(key);
  return found && found->is_string() ? std::string(found->get_string()) : "";
}

Result<std::vector<ReleaseRecord>> ReleaseRecords::read() const {
  std::vector<ReleaseRecord> records;
  const auto lines = read_lines(path_, kMostRecords);
  if (!lines && lines.error().code == Code::kNotFound) return records;
  if (!lines) return lines.error();
  for (const std::string& line : *lines) {
    auto record = read_line(line, records.empty() ? "" : records.back().digest);
    if (!record) return Error{Code::kCorrupt, fmt::format("{}: line {} {}", path_, records.size() + 1, record.error().message)};
    records.push_back(*std::move(record));
  }
  return records;
}

Result<ReleaseRecord> ReleaseRecords::append(json::object predicate, json::array subject, const SignatureKey* key) {
  SERIN_TRY(std::vector<ReleaseRecord> records, read());
  if (!records.empty() && records.back().text("id") == std::string_view(predicate.at("id").as_string())) return records.back();
  predicate["previous"] = records.empty() ? "" : records.back().digest;
  const json::object statement{
      {"_type", kStatementType}, {"subject", std::move(subject)}, {"predicateType", kPredicateType}, {"predicate", std::move(predicate)}};
  const std::string payload = json::serialize(statement);
  json::array signatures;
  if (key != nullptr) {
    SERIN_TRY(const std::string signature, key->sign(signed_bytes(payload)));
    signatures.push_back({{"keyid", key->id()}, {"sig", encode_base64(signature)}});
  }
  const std::string line = json::serialize(
      json::object{{"payloadType", kPayloadType}, {"payload", encode_base64(payload)}, {"signatures", std::move(signatures)}});
  std::string all;
  for (const ReleaseRecord& record : records) all += record.line + "\n";
  SERIN_CHECK(write_file_atomically(path_, all + line + "\n"));
  return read_line(line, records.empty() ? "" : records.back().digest);
}

bool is_signed_by(const ReleaseRecord& record, const SignatureKey& key) {
  const auto envelope = open_envelope(record.line);
  return envelope && std::ranges::any_of(envelope->signatures, [&](const auto& signature) {
           return signature.first == key.id() && key.verifies(signed_bytes(envelope->payload), signature.second);
         });
}

std::string release_folder(const std::string& registry, const std::string& service) {
  return fmt::format("{}/{}/{}", registry, kFolder, net::escaped(service));
}

Result<std::vector<std::string>> released_services(const std::string& registry) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(fs::path(registry) / kFolder, error), end; !error && it != end; it.increment(error))
    if (it->is_directory(error)) names.push_back(it->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory)
    return Error{Code::kIo, fmt::format("{}/{}: {}", registry, kFolder, error.message())};
  std::ranges::sort(names);
  return names;
}

}  // namespace serin::cli
