// plugin.h: the interface to libserin_mail.so, the only part that links libcurl.
//
// Both sides are built from the same tree, and the version proves it. It changes with this file and result.h. No exception crosses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace serin::cli::mail {

inline constexpr uint32_t kPluginVersion = 1;
inline constexpr const char* kPluginEntry = "serin_mail_plugin";

/// Texts are UTF-8. `from` and `to` are addresses alone, of printable ASCII without '<' and '>'; control characters of a subject become spaces.
struct Mail {
  std::string server;          ///< "smtp://HOST:PORT", "smtps://HOST:PORT"
  bool secure = true;          ///< smtp: refuse a server without STARTTLS
  std::string ca;              ///< file of authorities; empty: the system's
  std::string user, password;  ///< user empty: no login
  std::string from;
  std::vector<std::string> to;
  std::string subject, text;
  std::string file_name, file;  ///< an attachment of JSON
  std::chrono::milliseconds patience{10'000};
};

struct Plugin {
  std::string library;  ///< "libcurl/7.88.1"
  Status (*send)(const Mail& mail);
};

/// Fills `plugin`. Returns true if `version` is its own kPluginVersion.
using PluginEntry = bool (*)(uint32_t version, Plugin* plugin);

}  // namespace serin::cli::mail
