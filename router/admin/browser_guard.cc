// browser_guard.cc: three checks of a request's headers against attacks from web pages. They need no state and no secret.

#include "router/admin/browser_guard.h"

#include <array>
#include <string>
#include <string_view>

namespace serin::router {
namespace {

/// "[::1]:8081" -> "::1", "localhost:8081" -> "localhost"
std::string_view host_of(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.find(':'));
}

bool is_loopback_name(std::string_view host) {
  if (net::equal_ignoring_case(host, "localhost") || host == "::1") return true;
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_form(std::string_view content_type) {
  constexpr std::array<std::string_view, 3> kForms = {"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"};
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  for (const std::string_view form : kForms)
    if (net::equal_ignoring_case(type, form)) return true;
  return false;
}

}  // namespace

std::optional<net::Response> refuse_browser(const net::Request& request, bool on_loopback) {
  const std::string_view host = request.headers.get("host");
  if (on_loopback && !host.empty() && !is_loopback_name(host_of(host)))
    return net::json_error(403, "this server listens on loopback and answers to loopback names only, not to '" + std::string(host) + "'");
  const std::string_view origin = request.headers.get("origin");
  if (!origin.empty() && origin != "http://" + std::string(host))
    return net::json_error(403, "requests of other origins are refused; this one comes from '" + std::string(origin) + "'");
  const bool changes = request.method != "GET" && request.method != "HEAD";
  if (changes && is_form(request.headers.get("content-type")))
    return net::json_error(415, "content-type must be application/json or application/yaml");
  return std::nullopt;
}

}  // namespace serin::router
