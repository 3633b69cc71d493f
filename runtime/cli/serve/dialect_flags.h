// dialect_flags.h: adds the command-line flags of other servers (Triton, TensorFlow Serving, ...) to those of Serin.
#pragma once

#include <functional>
#include <initializer_list>

#include "runtime/cli/serve/serve_flags.h"
#include "runtime/cli/validators.h"

namespace serin::cli {

/// Returns true for "true", "1" and an empty word. Throws CLI::ValidationError.
bool parse_yes(const std::string& flag, const std::string& word);

/// Adds another server's flags. If Serin has a flag of the same name, it is removed.
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
  /// The flag may occur any number of times.
  void all(const char* flag, const std::function<void(const std::vector<std::string>&)>& set);
  void port(const char* flag, std::optional<uint16_t>& to, const char* none = "off");
  void yes_or_no(const char* flag, std::function<void(bool)> set);
  /// 0: the models are not checked for changes.
  void poll_seconds(const char* flag);
  void milliseconds(const char* flag, std::chrono::milliseconds& to);
  /// gRPC's channel arguments: NAME=NUMBER, ... Those that limit a connection's age are honoured; the log names the others.
  void channel_arguments(const char* flag);
  void io_threads(const char* flag);
  void threads(const char* flag);
  /// The log names these flags, with the reason, if they are given.
  void ignored(std::initializer_list<const char*> flags, const char* why);
  /// Flags that restrict access are refused: if they were ignored, the restriction would be lost.
  void refused(std::initializer_list<const char*> flags, const char* instead);

 private:
  void make_way(const char* flag);

  CLI::App& app_;
  ServeOptions& options_;
};

/// A model's own folder; its name may come before or after the path.
struct OneModel {
  std::string name, path;
  std::optional<serving::VersionPolicy> versions = {};
};

/// Serves the models that a file lists. It reads the file again while it serves, if the file can be read twice.
void serve_list(ServeOptions& options, const std::string& path, serving::ListedModels listed,
                Result<serving::ListedModels> (*read)(const std::string& path));

inline constexpr std::chrono::milliseconds kOftenest{50};  ///< shortest interval at which files on disk are checked
inline constexpr const char* kOneEngine = "there is one engine, which sizes itself";
inline constexpr const char* kNoSuchSetting = "there is no such setting";

void add_triton(Flags& flags, ServeOptions& options);
/// Checks that need all flags together. Throws CLI::ValidationError.
void check_triton(const ServeOptions& options);
void add_tfserving(Flags& flags, ServeOptions& options, OneModel& model);
void add_ovms(Flags& flags, ServeOptions& options, OneModel& model);
/// Like check_triton().
void check_ovms(const ServeOptions& options);
void add_kserve(Flags& flags, ServeOptions& options, OneModel& model);
void add_paddle(Flags& flags, ServeOptions& options, OneModel& model);

}  // namespace serin::cli
