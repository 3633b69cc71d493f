// mail_sender.cc: opens libserin_mail.so. libcurl is a plugin because it brings Kerberos, LDAP and GnuTLS, which no server needs: it would
// double the libraries that each `serin` loads at its start.

#include "runtime/cli/release/mail_sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/base/plugin_file.h"
#include "runtime/cli/release/mail/plugin.h"
#include "runtime/net/http.h"

namespace serin::cli {
namespace {

constexpr const char* kMailFile = "libserin_mail.so";
constexpr size_t kMostReceivers = 100, kLargestPassword = 4096, kLongestAddress = 254;

/// RFC 5321 as mail is used: no quotes, no comments, no literal addresses.
bool is_address(std::string_view text) {
  const size_t at = text.find('@');
  const auto allowed = [](char c) { return c > ' ' && c <= '~' && std::string_view("<>()[]\\,;:\"").find(c) == std::string_view::npos; };
  return text.size() <= kLongestAddress && at != std::string_view::npos && at > 0 && at + 1 < text.size() &&
         text.find('@', at + 1) == std::string_view::npos && std::ranges::all_of(text, allowed);
}

/// HOST:PORT, with nothing more.
bool is_server(std::string_view text) {
  for (const std::string_view scheme : {"smtp://", "smtps://"}) {
    if (!text.starts_with(scheme)) continue;
    const std::string place(text.substr(scheme.size()));
    const auto url = net::parse_url("http://" + place);
    return url && url->path == "/" && place.ends_with(fmt::format(":{}", url->origin.port));
  }
  return false;
}

Result<std::string> password_of(const MailReceiver& receiver) {
  std::string text;
  if (!receiver.password_variable.empty()) {
    const char* const value = std::getenv(receiver.password_variable.c_str());
    if (!value) return invalid(receiver.password_variable + " is not set in the environment");
    text = value;
  } else {
    SERIN_TRY(text, read_secret_file(receiver.password, kLargestPassword));
  }
  text = text.substr(0, text.find_first_of("\r\n"));
  if (text.empty()) return invalid((receiver.password.empty() ? receiver.password_variable : receiver.password) + ": has no password");
  return text;
}

void read_login(const config::Node& node, const std::string& folder, MailReceiver& receiver, config::Problems& problems) {
  const auto path = [&](std::string_view key, std::string& to) {
    const auto given = node.find(key);
    if (given && problems.read(to, given->text())) to = (std::filesystem::path(folder) / to).lexically_normal().string();
  };
  problems.read(receiver.user, node.text("user", ""));
  path("password", receiver.password);
  path("ca", receiver.ca);
  problems.read(receiver.password_variable, node.text("passwordVariable", ""));
  const bool one = receiver.password.empty() != receiver.password_variable.empty();
  if (!receiver.user.empty() && !one) problems.add(node.error("'user' needs either 'password', a file, or 'passwordVariable'"));
  if (receiver.user.empty() && (!receiver.password.empty() || !receiver.password_variable.empty()))
    problems.add(node.error("a password needs 'user'"));
  if (receiver.user.empty() || !one) return;
  if (const auto password = password_of(receiver); !password) problems.add(node.error(password.error().message));
}

}  // namespace

MailReceiver read_mail(const config::Node& node, const std::string& folder, config::Problems& problems) {
  MailReceiver receiver;
  problems.allow_only(node, {"mail", "from", "to", "user", "password", "passwordVariable", "ca", "tls"});
  const auto server = node.at("mail");
  if (!server)
    problems.add(server.error());
  else if (problems.read(receiver.server, server->text()) && !is_server(receiver.server))
    problems.add(server->error("must be smtp://HOST:PORT or smtps://HOST:PORT"));
  const auto from = node.at("from");
  if (!from)
    problems.add(from.error());
  else if (problems.read(receiver.from, from->text()) && !is_address(receiver.from))
    problems.add(from->error("must be an address such as serin@corp.example"));
  const auto to = node.at("to");
  if (!to) {
    problems.add(to.error());
  } else if (!to->is_list() || to->items().empty() || to->items().size() > kMostReceivers) {
    problems.add(to->error(fmt::format("must be a list of 1 to {} addresses", kMostReceivers)));
  } else {
    for (const config::Node& item : to->items())
      if (std::string& address = receiver.to.emplace_back(); problems.read(address, item.text()) && !is_address(address))
        problems.add(item.error("must be an address such as team@corp.example"));
  }
  read_login(node, folder, receiver, problems);
  std::string tls = "required";
  if (const auto given = node.find("tls"); given && problems.read(tls, given->one_of({"required", "none"})) && tls == "none") {
    receiver.secure = false;
    if (!receiver.user.empty()) problems.add(given->error("'none' would send the password as it is"));
    if (receiver.server.starts_with("smtps://")) problems.add(given->error("'none' contradicts smtps://"));
  }
  return receiver;
}

Status send_mail(const MailReceiver& receiver, const std::string& subject, const std::string& text, const std::string& json) {
  mail::Plugin plugin;
  SERIN_CHECK(open_plugin({.file = kMailFile, .entry = mail::kPluginEntry, .missing = fmt::format("mail needs {}", kMailFile)},
                          mail::kPluginVersion, plugin));
  mail::Mail made{.server = receiver.server,
                  .secure = receiver.secure,
                  .ca = receiver.ca,
                  .user = receiver.user,
                  .password = {},
                  .from = receiver.from,
                  .to = receiver.to,
                  .subject = subject,
                  .text = text,
                  .file_name = "release.json",
                  .file = json};
  if (!receiver.user.empty()) {
    SERIN_TRY(made.password, password_of(receiver));
  }
  return plugin.send(made);
}

}  // namespace serin::cli
