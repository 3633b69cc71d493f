// http.cc: the small functions that all users of HTTP messages share.

#include "runtime/net/http.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "runtime/base/json_quote.h"
#include "runtime/base/recycler.h"
#include "runtime/net/message/text.h"

namespace serin::net {
namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

}  // namespace

bool equal_ignoring_case_and_size(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

void Headers::add(std::string_view name, std::string_view value) {
  if (name.empty() || !text::all(name, text::kToken)) return;
  add_parsed(name, value);
  for (char& c : std::span(text_).last(value.size() + 2).first(value.size()))
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F) c = ' ';
}

void Headers::add_parsed(std::string_view name, std::string_view value) {
  fields_.push_back({static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(name.size()), static_cast<uint32_t>(value.size())});
  text_.append(name).append(": ").append(value).append("\r\n");
}

void Headers::set(std::string_view name, std::string_view value) {
  remove(name);
  add(name, value);
}

void Headers::remove(std::string_view name) {
  remove_if([name](const Header& header) { return equal_ignoring_case(header.name, name); });
}

std::string_view Headers::get(std::string_view name) const {
  for (const Field& field : fields_)
    if (equal_ignoring_case(header(field).name, name)) return header(field).value;
  return {};
}

bool Headers::has(std::string_view name) const {
  return std::ranges::any_of(fields_, [&](const Field& field) { return equal_ignoring_case(header(field).name, name); });
}

void Headers::clear() {
  text_.clear();
  fields_.clear();
}

void Request::clear() {
  method.clear();
  clear_for_reuse(target);
  clear_for_reuse(path);
  clear_for_reuse(query);
  headers.clear();
  clear_for_reuse(body);
  share.release();
  whole = {};
  peer.clear();
  certificate = nullptr;
}

void Response::clear() {
  status = 200;
  headers.clear();
  clear_for_reuse(body);
  source = nullptr;
  trailers.clear();
  close = false;
}

Response json_error(int status, std::string_view message) {
  Response response;
  response.status = status;
  response.headers.add("content-type", "application/json");
  response.body = "{\"error\":" + json_quote(message) + "}";
  return response;
}

std::string json_quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_json_quoted(out, text);
  return out;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100: return "Continue";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 428: return "Precondition Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 499: return "Client Closed Request";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Status";
  }
}

std::optional<Url> parse_url(std::string_view text) {
  constexpr std::string_view kPlain = "http://", kSecure = "https://";
  const bool secure = text.starts_with(kSecure);
  if (!secure && !text.starts_with(kPlain)) return std::nullopt;
  text.remove_prefix(secure ? kSecure.size() : kPlain.size());
  Url url{.origin = {.host = "", .port = static_cast<uint16_t>(secure ? 443 : 80), .secure = secure}};
  Origin& origin = url.origin;
  const size_t slash = text.find('/');
  std::string_view authority = text.substr(0, slash);
  if (slash != std::string_view::npos) url.path = text.substr(slash);

  const size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  if (bracket == std::string_view::npos) return std::nullopt;
  if (bracket > 0 && bracket + 1 < authority.size() && authority[bracket + 1] != ':') return std::nullopt;
  const size_t colon = authority.find(':', bracket);
  if (colon != std::string_view::npos) {
    const std::string_view port = authority.substr(colon + 1);
    const auto [end, failure] = std::from_chars(port.data(), port.data() + port.size(), origin.port);
    if (failure != std::errc() || end != port.data() + port.size() || origin.port == 0) return std::nullopt;
    authority = authority.substr(0, colon);
  }
  origin.host = bracket == 0 ? authority : authority.substr(1, bracket - 1);  // "[::1]" -> "::1"
  const auto odd = [](char c) { return c <= ' ' || c == '@' || c == '?' || c == '#' || c == '[' || c == ']' || c == 0x7F; };
  if (origin.host.empty() || std::any_of(origin.host.begin(), origin.host.end(), odd)) return std::nullopt;
  if (std::any_of(url.path.begin(), url.path.end(), [](char c) { return c <= ' ' || c == '#' || c == 0x7F; })) return std::nullopt;
  return url;
}

}  // namespace serin::net
