// mail_sender.h: mails how a release has ended, by a server of SMTP.
//
//   - {mail: "smtp://mail.corp:587", from: serin@corp.example, to: [team@corp.example], user: serin, password: mail.password}
#pragma once

#include <string>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::cli {

/// An entry of `notify`.
struct MailReceiver {
  std::string server;  ///< "smtp://HOST:PORT": STARTTLS; "smtps://HOST:PORT": TLS from the beginning
  std::string from;
  std::vector<std::string> to;
  std::string user;               ///< empty: no login
  std::string password;           ///< path of a file with it in its first line
  std::string password_variable;  ///< of the environment, instead
  std::string ca;                 ///< file of authorities; empty: the system's
  bool secure = true;             ///< false: without TLS, and without a login
};

/// Reads the map, and reports what is wrong with it: addresses, contradictions, a password that is not there. Paths are relative to `folder`.
MailReceiver read_mail(const config::Node& node, const std::string& folder, config::Problems& problems);

/// "smtp://HOST:PORT"; an error has the library's reason and no password. kNotFound: there is no libserin_mail.so next to the program.
Status send_mail(const MailReceiver& receiver, const std::string& subject, const std::string& text, const std::string& json);

}  // namespace serin::cli
