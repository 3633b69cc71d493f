#include "runtime/registry/sigv4.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <map>
#include <vector>

#include "runtime/registry/sha256.h"

namespace serin::registry {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

std::string hmac(std::string_view key, std::string_view text) {
  std::string code(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(code.data()), &size);
  code.resize(size);
  return code;
}

std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return made;
}

/// Runs of spaces become one.
std::string one_spaced(std::string_view value) {
  std::string made;
  for (const char c : value) {
    if (c != ' ' && c != '\t') {
      made += c;
    } else if (!made.empty() && made.back() != ' ') {
      made += ' ';
    }
  }
  if (made.ends_with(' ')) made.pop_back();
  return made;
}

/// Sorted, and each parameter with '='.
std::string canonical_query(std::string_view query) {
  std::vector<std::pair<std::string_view, std::string_view>> parameters;
  while (!query.empty()) {
    const std::string_view each = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), each.size() + 1));
    const size_t equals = std::min(each.find('='), each.size());
    parameters.emplace_back(each.substr(0, equals), each.substr(std::min(each.size(), equals + 1)));
  }
  std::ranges::sort(parameters);
  std::string made;
  for (const auto& [name, value] : parameters) made += fmt::format("{}{}={}", made.empty() ? "" : "&", name, value);
  return made;
}

}  // namespace

std::string authorization(const net::Outgoing& request, std::string_view host, std::string_view payload, const AwsKey& key,
                          const SigningScope& scope) {
  std::map<std::string, std::string> headers{{"host", std::string(host)}};
  for (const net::Header header : request.headers) headers[lower(header.name)] = one_spaced(header.value);
  std::string listed;
  std::vector<std::string_view> names;
  for (const auto& [name, value] : headers) {
    listed += fmt::format("{}:{}\n", name, value);
    names.push_back(name);
  }
  const std::string signed_headers = fmt::format("{}", fmt::join(names, ";"));
  const std::string_view target = request.target;
  const size_t query = std::min(target.find('?'), target.size());
  const std::string canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, target.substr(0, query),
                  canonical_query(target.substr(std::min(target.size(), query + 1))), listed, signed_headers, payload);

  constexpr size_t kDay = sizeof("20130524") - 1;
  const std::string day = scope.time.substr(0, kDay), place = fmt::format("{}/{}/{}/aws4_request", day, scope.region, scope.service);
  const std::string digest = digest_of(canonical).substr(sizeof("sha256:") - 1);
  const std::string to_sign = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, scope.time, place, digest);
  const std::string signing_key = hmac(hmac(hmac(hmac("AWS4" + key.secret, day), scope.region), scope.service), "aws4_request");
  return fmt::format("{} Credential={}/{},SignedHeaders={},Signature={}", kAlgorithm, key.id, place, signed_headers,
                     hexadecimal(hmac(signing_key, to_sign)));
}

}  // namespace serin::registry
