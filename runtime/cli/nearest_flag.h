// nearest_flag.h: names an unknown flag or command, and suggests the one that it most likely means.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/nearest_name.h"

namespace serin::cli {

/// The command that the words led to before the parse failed.
inline const CLI::App& last_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

/// The error's own words. An unknown command is named, where CLI11 says only that one is required.
inline std::string complaint_of(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> left_over = app.remaining(/*recurse=*/true);
  const bool lacks_command = static_cast<CLI::ExitCodes>(error.get_exit_code()) == CLI::ExitCodes::RequiredError &&
                             !last_command(app).get_subcommands(/*filter=*/nullptr).empty();
  if (!lacks_command || left_over.empty() || left_over.front().starts_with('-')) return error.what();
  const std::string within = app.get_subcommands().empty() ? "" : " of serin " + last_command(app).get_name();
  return "'" + left_over.front() + "' is no command" + within;
}

/// Returns "; did you mean '--port'?" for the first word that the failed parse did not accept. Returns an empty text if no name is near or
/// the error has another cause.
inline std::string flag_meant(const CLI::App& app, const CLI::ParseError& error) {
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (kind != CLI::ExitCodes::ExtrasError && kind != CLI::ExitCodes::RequiredError) return "";
  const std::vector<std::string> left_over = app.remaining(/*recurse=*/true);
  if (left_over.empty()) return "";
  const CLI::App* const command = &last_command(app);
  const auto is_flag = [](const std::string& word) { return word.starts_with('-'); };
  const auto flag = std::ranges::find_if(left_over, is_flag);
  const std::string& word = flag == left_over.end() ? left_over.front() : *flag;
  std::vector<std::string> names;
  if (is_flag(word))
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  else
    for (const CLI::App* other : command->get_subcommands(/*filter=*/nullptr)) names.push_back(other->get_name());
  return did_you_mean(word.substr(0, word.find('=')), names);
}

}  // namespace serin::cli
