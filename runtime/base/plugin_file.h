// plugin_file.h: opens a plugin of the program: a shared library with what few commands need, which lies next to the program.
//
//   cbc::Plugin plugin;
//   SERIN_CHECK(open_plugin({.file = "libserin_packing.so", .entry = cbc::kPluginEntry, .missing = "an exact answer needs"}, cbc::kPluginVersion, plugin));
//
// It is never closed: what it made may hold its code.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace serin {

struct PluginFile {
  std::string file;              ///< "libserin_packing.so"
  const char* entry = nullptr;   ///< the function that fills a plugin
  std::string missing;           ///< what an error says first where there is no such file
  std::string path = {};         ///< of the file; empty: next to the program, or in the folder lib next to that of the program
  bool own_names_first = false;  ///< its libraries have names that the program has, too, for something else (not with sanitizers)
};

/// kNotFound: there is no such library, with the reason for each place, or it has no such function.
Result<void*> plugin_entry(const PluginFile& wanted);

/// Fills `plugin`. Errors: as plugin_entry(); kFailedPrecondition: it was built with another version of the interface.
template <class Plugin>
Status open_plugin(const PluginFile& wanted, uint32_t version, Plugin& plugin) {
  SERIN_TRY(void* const entry, plugin_entry(wanted));
  if (reinterpret_cast<bool (*)(uint32_t, Plugin*)>(entry)(version, &plugin)) return {};
  return Error{Code::kFailedPrecondition, wanted.file + " is of another build than this program"};
}

}  // namespace serin
