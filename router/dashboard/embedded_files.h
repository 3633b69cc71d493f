// embedded_files.h: The files that embed.cmake puts into the program.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace serin::router {

struct EmbeddedFile {
  std::string_view name;                ///< "index.html"
  std::span<const unsigned char> gzip;  ///< its bytes, compressed
};
std::vector<EmbeddedFile> embedded_files();

}  // namespace serin::router
