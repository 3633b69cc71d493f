// json_pointer.h: Reads single values of JSON documents, by their JSON pointers (RFC 6901), without reading the rest into memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace serin::protocol {

class JsonPointerReader {
 public:
  JsonPointerReader();
  JsonPointerReader(JsonPointerReader&&) noexcept;
  JsonPointerReader& operator=(JsonPointerReader&&) noexcept;
  ~JsonPointerReader();

  /// The text, number or boolean at `pointer`, as text; empty: there is none, or the document is not JSON so far.
  std::string read(std::string_view json, std::string_view pointer);

 private:
  struct State;
  std::unique_ptr<State> state_;  // made by the first read
};

}  // namespace serin::protocol
