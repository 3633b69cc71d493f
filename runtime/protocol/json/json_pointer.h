// json_pointer.h: Reads single values of JSON documents, by their JSON pointers (RFC 6901), without reading the rest into memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace serin::protocol {

class JsonPointerReader {
 public:
  JsonPointerReader();
  JsonPointerReader(JsonPointerReader&&) noexcept;
  JsonPointerReader& operator=(JsonPointerReader&&) noexcept;
  ~JsonPointerReader();

  /// The text, number or boolean at `pointer`, as text; empty: there is none, or the document is not JSON so far.
  std::string read(std::string_view json, std::string_view pointer);
  /// The document with the values at these places replaced by empty ones of their kind: "", 0, false, [], {}. All other bytes stay, and
  /// every value of a repeated key is replaced. Nothing: it is not JSON, at least not up to the last of these places.
  std::optional<std::string> redact(std::string_view json, const std::vector<std::string>& pointers);

 private:
  struct State;
  std::unique_ptr<State> state_;  // made by the first read
};

}  // namespace serin::protocol
