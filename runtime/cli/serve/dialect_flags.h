// dialect_flags.h: flags of other servers on top of Serin's, and what each of those servers' command lines is made of.
#pragma once

#include <functional>
#include <initializer_list>

#include "runtime/cli/serve/serve_flags.h"
#include "runtime/cli/validators.h"

namespace serin::cli {

/// "true", "1" and nothing at all: yes. Throws CLI::ValidationError.
bool parse_yes(const std::string& flag, const std::string& word);

/// Another server's flags on top of Serin's, which give way where both have the name.
class Flags {
 public:
  Flags(CLI::App& app, ServeOptions& options) : app_(app), options_(options) {}

  template <class T>
  CLI::Option* value(const char* flag, const std::function<void(const T&)>& set) {
    make_way(flag);
    return app_.add_option_function<T>(flag, set)->take_last();
  }
  void text(const char* flag, std::string& to);
  void each(const char* flag, std::function<void(const std::string&)> set);
  /// However often it is given.
  void all(const char* flag, const std::function<void(const std::vector<std::string>&)>& set);
  void port(const char* flag, std::optional<uint16_t>& to, const char* none = "off");
  void yes_or_no(const char* flag, std::function<void(bool)> set);
  /// 0: the models are not looked at again.
  void poll_seconds(const char* flag);
  void milliseconds(const char* flag, std::chrono::milliseconds& to);
  /// gRPC's own: NAME=NUMBER, ...; those of a connection's age hold, others are named in the log.
  void channel_arguments(const char* flag);
  void io_threads(const char* flag);
  void threads(const char* flag);
  /// Named in the log where they are given, with why.
  void ignored(std::initializer_list<const char*> flags, const char* why);
  /// Ignoring these would let in who was to be kept out.
  void refused(std::initializer_list<const char*> flags, const char* instead);

 private:
  void make_way(const char* flag);

  CLI::App& app_;
  ServeOptions& options_;
};

/// A model's own folder; its name may come before or behind.
struct OneModel {
  std::string name, path;
  std::optional<serving::VersionPolicy> versions = {};
};

/// Serves what a file lists, and reads the file again while it serves, where it is one that can be read twice.
void serve_list(ServeOptions& options, const std::string& path, serving::ListedModels listed,
                Result<serving::ListedModels> (*read)(const std::string& path));

inline constexpr std::chrono::milliseconds kOftenest{50};  ///< that anything on disk is looked at
inline constexpr const char* kOneEngine = "there is one engine, which sizes itself";
inline constexpr const char* kNoSuchSetting = "there is no such setting";

void add_triton(Flags& flags, ServeOptions& options);
/// What only all flags together tell. Throws CLI::ValidationError.
void check_triton(const ServeOptions& options);
void add_tfserving(Flags& flags, ServeOptions& options, OneModel& model);
void add_ovms(Flags& flags, ServeOptions& options, OneModel& model);
/// As check_triton().
void check_ovms(const ServeOptions& options);
void add_kserve(Flags& flags, ServeOptions& options, OneModel& model);
void add_paddle(Flags& flags, ServeOptions& options, OneModel& model);

}  // namespace serin::cli
