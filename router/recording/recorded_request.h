// recorded_request.h: One request that is kept to be sent again, and the file format of many.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace serin::router {

struct RecordedRequest {
  std::string method, target;  ///< as the client sent them; target: path and query
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  bool grpc = false, names_model = false;  ///< Target
  std::chrono::system_clock::time_point at;

  size_t bytes() const;  ///< that it takes in memory, about
  bool operator==(const RecordedRequest&) const = default;
};
using Recording = std::vector<std::shared_ptr<const RecordedRequest>>;

std::string encode(const RecordedRequest& request);
/// kCorrupt: it is no such text.
Result<RecordedRequest> decode_request(std::string_view bytes);

}  // namespace serin::router
