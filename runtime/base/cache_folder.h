// cache_folder.h: the user's folder for what can be made again.
#pragma once

#include <string>

namespace serin {

/// `asked`; nothing if that is "none". If it is empty: "serin" in XDG_CACHE_HOME or in .cache of HOME, if those are absolute paths (XDG Base
/// Directory Specification), else nothing. The folder need not exist.
std::string cache_folder(const std::string& asked = {});

}  // namespace serin
