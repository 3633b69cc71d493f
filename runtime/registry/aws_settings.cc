#include "runtime/registry/aws_settings.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>

#include "runtime/base/file.h"

namespace serin::registry {
namespace {

constexpr size_t kMostSettings = 1 << 20;

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpaces);
  return first == std::string_view::npos ? std::string() : std::string(text.substr(first, text.find_last_not_of(kSpaces) - first + 1));
}

std::string home_path(std::string path, const std::string& below_home) {
  if (path.empty()) path = "~/" + below_home;
  return path.starts_with("~/") ? aws_variable("HOME") + path.substr(1) : path;
}

using Section = std::map<std::string, std::string>;

/// Of a file of AWS: lines `name = value` below a line `[section]`. Nothing: there is no such section.
std::optional<Section> section_of(std::string_view text, std::string_view wanted) {
  std::optional<Section> found;
  bool inside = false;
  while (!text.empty()) {
    const std::string line = trimmed(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), text.find('\n') == std::string_view::npos ? text.size() : text.find('\n') + 1));
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      inside = trimmed(std::string_view(line).substr(1, line.find(']') - 1)) == wanted;
      if (inside && !found) found.emplace();
    } else if (const size_t equals = line.find('='); inside && equals != std::string::npos) {
      (*found)[trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 1));
    }
  }
  return found;
}

std::string profile() {
  const std::string named = aws_variable("AWS_PROFILE");
  return named.empty() ? "default" : named;
}

AwsCredentials unsigned_because(const std::string& why) { return {std::nullopt, "there is no AWS_ACCESS_KEY_ID, and " + why}; }

Result<AwsCredentials> from_file() {
  const std::string named = aws_variable("AWS_SHARED_CREDENTIALS_FILE"), path = home_path(named, ".aws/credentials"), name = profile();
  const auto text = read_secret_file(path, kMostSettings);
  const bool is_named = !aws_variable("AWS_PROFILE").empty();
  if (!text && text.error().code == Code::kNotFound && named.empty() && !is_named) return unsigned_because(path + " does not exist");
  if (!text) return text.error();
  const auto section = section_of(*text, name);
  const std::string source = fmt::format("profile '{}' of {}", name, path);
  if (!section && !is_named) return unsigned_because(path + " has no profile 'default'");
  if (!section) return Error{Code::kNotFound, fmt::format("{} has no profile '{}', which AWS_PROFILE names", path, name)};
  const auto value = [&](const char* key) {
    const auto found = section->find(key);
    return found == section->end() ? std::string() : found->second;
  };
  AwsKey key{value("aws_access_key_id"), value("aws_secret_access_key"), value("aws_session_token")};
  if (key.id.empty() || key.secret.empty())
    return invalid(source + " lacks aws_access_key_id or aws_secret_access_key; roles, SSO and credential_process are not read");
  return AwsCredentials{std::move(key), source};
}

}  // namespace

std::string aws_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? trimmed(value) : std::string();
}

Result<AwsCredentials> aws_credentials() {
  AwsKey key{aws_variable("AWS_ACCESS_KEY_ID"), aws_variable("AWS_SECRET_ACCESS_KEY"), aws_variable("AWS_SESSION_TOKEN")};
  if (key.id.empty() && key.secret.empty()) return from_file();
  if (key.id.empty() || key.secret.empty())
    return invalid("of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY one is set and the other is not");
  return AwsCredentials{std::move(key), "AWS_ACCESS_KEY_ID"};
}

std::string aws_region() {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (std::string region = aws_variable(name); !region.empty()) return region;
  const std::string name = profile();
  if (const auto text = read_file(home_path(aws_variable("AWS_CONFIG_FILE"), ".aws/config"), kMostSettings)) {
    const auto section = section_of(*text, name == "default" ? name : "profile " + name);
    if (section && section->contains("region")) return section->at("region");
  }
  return "us-east-1";
}

std::string aws_endpoint() {
  const std::string endpoint = aws_variable("AWS_ENDPOINT_URL_S3");
  return endpoint.empty() ? aws_variable("AWS_ENDPOINT_URL") : endpoint;
}

}  // namespace serin::registry
