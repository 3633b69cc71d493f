// recording_file.cc: the first record has the settings, each other one a request.

#include "router/recording/recording_file.h"

#include <fmt/format.h>

#include <utility>

namespace serin::router {
namespace {

std::string purpose_of(const std::string& service) { return "recorded requests of " + service; }

/// An empty line ends each list: no entry is empty.
std::string print_settings(const RecordingFile& file) {
  std::string text;
  for (const auto* list : {&file.headers, &file.redact}) {
    for (const std::string& entry : *list) text += entry + '\n';
    text += '\n';
  }
  return text;
}

bool read_settings(std::string_view text, RecordingFile& file) {
  for (auto* list : {&file.headers, &file.redact}) {
    while (true) {
      const size_t end = text.find('\n');
      if (end == std::string_view::npos) return false;
      const std::string_view entry = text.substr(0, end);
      text.remove_prefix(end + 1);
      if (entry.empty()) break;
      list->emplace_back(entry);
    }
  }
  return text.empty();
}

}  // namespace

Result<RecordingFile> read_recording_file(const std::string& path, const SealingKey& key, const std::string& service) {
  SERIN_TRY(const std::vector<std::string> records, read_sealed(path, key, purpose_of(service)));
  RecordingFile file;
  if (records.empty() || !read_settings(records.front(), file))
    return Error{Code::kCorrupt, path + ": its first record is not one of a recording"};
  for (size_t i = 1; i < records.size(); ++i) {
    auto request = decode_request(records[i]);
    if (!request) return request.error().in(path);
    file.requests.push_back(std::make_shared<const RecordedRequest>(*std::move(request)));
  }
  return file;
}

Status write_recording_file(const std::string& path, const SealingKey& key, const std::string& service, const RecordingFile& file) {
  std::vector<std::string> records{print_settings(file)};
  for (const auto& request : file.requests) records.push_back(encode(*request));
  return write_sealed(path, key, purpose_of(service), records);
}

}  // namespace serin::router
