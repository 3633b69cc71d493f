#include "runtime/cli/serve/dialect_flags.h"

#include <algorithm>
#include <filesystem>

namespace serin::cli {

bool parse_yes(const std::string& flag, const std::string& word) {
  const std::string lower = CLI::detail::to_lower(word);
  if (lower.empty() || lower == "true" || lower == "1" || lower == "yes" || lower == "on") return true;
  if (lower == "false" || lower == "0" || lower == "no" || lower == "off") return false;
  throw CLI::ValidationError(flag, word + " is neither true nor false");
}

void Flags::text(const char* flag, std::string& to) {
  value<std::string>(flag, [&to](const std::string& text) { to = text; });
}

void Flags::each(const char* flag, std::function<void(const std::string&)> set) {
  all(flag, [set = std::move(set)](const std::vector<std::string>& words) { std::ranges::for_each(words, set); });
}

void Flags::all(const char* flag, const std::function<void(const std::vector<std::string>&)>& set) {
  make_way(flag);
  app_.add_option_function<std::vector<std::string>>(flag, set)->allow_extra_args(false);
}

void Flags::port(const char* flag, std::optional<uint16_t>& to, const char* none) {
  make_way(flag);
  add_port(app_, flag, to, "", none)->take_last();
}

void Flags::yes_or_no(const char* flag, std::function<void(bool)> set) {
  make_way(flag);
  const auto read = [flag, set = std::move(set)](const std::string& word) { set(parse_yes(flag, word)); };
  app_.add_option_function<std::string>(flag, read)->expected(0, 1)->take_last();
}

void Flags::poll_seconds(const char* flag) {
  value<double>(flag, [&source = options_.source](double count) {
    source.control = count > 0 ? serving::Control::kPoll : serving::Control::kNone;
    if (count > 0) source.poll = std::max(cli::milliseconds(count), kOftenest);
  })->check(between(-1e6, 1e6));
}

void Flags::milliseconds(const char* flag, std::chrono::milliseconds& to) {
  value<int64_t>(flag, [&to](int64_t count) { to = std::chrono::milliseconds(count); })->check(CLI::Range(int64_t{0}, int64_t{INT32_MAX}));
}

void Flags::channel_arguments(const char* flag) {
  value<std::string>(flag, [flag, &options = options_](const std::string& list) {
    for (const std::string& argument : CLI::detail::split(list, ',')) {
      if (argument.empty()) continue;
      const size_t equals = argument.find('=');
      const std::string name = argument.substr(0, equals);
      std::chrono::milliseconds* const known = name == "grpc.max_connection_age_ms"         ? &options.grpc_age
                                               : name == "grpc.max_connection_age_grace_ms" ? &options.grpc_age_grace
                                                                                            : nullptr;
      if (!known) {
        options.remarks.push_back(fmt::format("{}: {} changes nothing: {}", flag, name, kNoSuchSetting));
        continue;
      }
      const auto count = equals == std::string::npos ? std::nullopt : parse_number<int32_t>(std::string_view(argument).substr(equals + 1));
      if (!count || *count < 0) throw CLI::ValidationError(flag, fmt::format("{}: not a number of milliseconds", argument));
      *known = std::chrono::milliseconds(*count == INT32_MAX ? 0 : *count);  // as gRPC says "infinite"
    }
  });
}

void Flags::io_threads(const char* flag) {
  value<int>(flag, [&options = options_](int count) { options.io_threads = std::clamp(count, 1, 64); });
}

void Flags::threads(const char* flag) {
  value<int>(flag, [&options = options_](int count) { options.threads = std::clamp(count, 0, 1024); });
}

void Flags::ignored(std::initializer_list<const char*> flags, const char* why) {
  for (const char* flag : flags) {
    make_way(flag);
    const auto note = [this, flag, why](const std::string&) {
      options_.remarks.push_back(fmt::format("{} changes nothing: {}", flag, why));
    };
    app_.add_option_function<std::string>(flag, note)->expected(0, 1)->take_last();
  }
}

void Flags::refused(std::initializer_list<const char*> flags, const char* instead) {
  for (const char* flag : flags) {
    const auto refuse = [flag, instead](const std::string&) {
      throw CLI::ValidationError(flag, std::string("is not accepted: ") + instead);
    };
    app_.add_option_function<std::string>(flag, refuse)->expected(0, 1)->take_last();
  }
}

void Flags::make_way(const char* flag) {
  if (CLI::Option* own = app_.get_option_no_throw(flag)) app_.remove_option(own);
}

void serve_list(ServeOptions& options, const std::string& path, serving::ListedModels listed,
                Result<serving::ListedModels> (*read)(const std::string& path)) {
  serving::ModelSource& source = options.source;
  source.roots = std::move(listed.roots);
  source.list.remarks = std::move(listed.remarks);
  std::error_code unreadable;
  if (std::filesystem::is_regular_file(path, unreadable)) {
    source.list.path = path;
    source.list.read = read;
  } else {
    options.remarks.push_back(path + " is not a file that can be read again: its list stays in effect");
  }
}

}  // namespace serin::cli
