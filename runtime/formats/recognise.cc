// recognise.cc: recognises files that are not models. Half of the "corrupt models" that users report are other files under the right name:
// a page that says 404, a pointer that git-lfs never replaced, a checkpoint that was never exported. It runs only after a file failed to be
// ONNX, so a guess can do no harm.

#include "runtime/formats/recognise.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "runtime/formats/model_file.h"

namespace serin::formats {
namespace {

struct Magic {
  size_t offset;
  std::string_view bytes;
  const char* what;
};

using namespace std::string_view_literals;

/// `what`: or the ending of such files, where they are known by it (model_file.h).
constexpr Magic kMagics[] = {
    {0, "version https://git-lfs"sv, "a Git LFS pointer: the model itself was not fetched (git lfs pull)"},
    {0, "\x89HDF\r\n\x1a\n"sv, ".h5"},
    {0, "GGUF"sv, ".gguf"},
    {0, "ftrt"sv, ".plan"},
    {0, "ptrt"sv, ".plan"},
    {4, "TFL3"sv, ".tflite"},
    {4, "ORTM"sv, ".ort"},
    {0, "\x1f\x8b"sv, "a gzip file: decompress it first"},
    {0, "\x28\xb5\x2f\xfd"sv, "a zstd file: decompress it first"},
    {257, "ustar"sv, "a tar archive: extract it first"},
    {0,
     "\x7f"
     "ELF"sv,
     "a program or library (ELF)"},
};

std::string_view text_of(Bytes file, size_t limit) { return {reinterpret_cast<const char*>(file.data()), std::min(file.size(), limit)}; }

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && std::equal(lower.begin(), lower.end(), text.begin(),
                                                   [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

bool is_safetensors(Bytes file) {
  uint64_t header = 0;  // its length, then JSON
  if (file.size() < 10) return false;
  std::memcpy(&header, file.data(), sizeof header);
  return header >= 2 && header <= file.size() - 8 && file[8] == std::byte{'{'};
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\r' || c == '\t'; });
}

std::optional<std::string> recognise_text(std::string_view start) {
  const size_t first = start.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "nothing but blanks";
  const std::string_view text = start.substr(first);
  if (starts_with_ignoring_case(text, "<!doctype html") || starts_with_ignoring_case(text, "<html"))
    return "an HTML page: a download that ended at a login or error page";
  if (starts_with_ignoring_case(text, "<?xml")) return "an XML document";
  if (!is_printable(start)) return std::nullopt;
  if (text[0] == '{' || text[0] == '[') return "a JSON document";
  return "a text that begins with '" + std::string(text.substr(0, text.substr(0, 40).find_first_of("\r\n"))) + "'";
}

}  // namespace

std::optional<std::string> recognise(Bytes file) {
  if (file.empty()) return "an empty file";
  const std::string_view start = text_of(file, 512);
  for (const Magic& magic : kMagics)
    if (start.size() > magic.offset && start.substr(magic.offset).starts_with(magic.bytes))
      return magic.what[0] == '.' ? foreign_kind(magic.what) : magic.what;
  if (start.starts_with("PK\x03\x04"sv)) {
    const bool torch = start.find("data.pkl") != std::string_view::npos;
    const bool keras = start.find("metadata.json") != std::string_view::npos || start.find("config.json") != std::string_view::npos;
    return torch ? foreign_kind(".pt") : keras ? "a Keras model: its name must end in .keras" : "a zip archive";
  }
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(start[i]); };
  if (start.size() > 2 && byte(0) == 0x80 && byte(1) >= 2 && byte(1) <= 5) return foreign_kind(".pkl");
  if (is_safetensors(file)) return foreign_kind(".safetensors");
  return recognise_text(start);
}

}  // namespace serin::formats
