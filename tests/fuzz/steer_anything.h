// steer_anything.h: what a fuzzer asks of everything that steers the router: documents, requests to the admin API, records, answers that are looked at.
#pragma once

#include <string_view>

namespace serin::fuzz {

/// The first byte chooses who reads the rest: s a specification, c a router.yaml, v a verdict's record, p an answer of Prometheus, b the body of an
/// inference answer (with how much of it is JSON), a a request to the admin API (method, path, headers, empty line, body).
/// What is accepted must hold what it promises: a specification that is printed reads back to the same, for one.
void steer_anything(std::string_view input);

}  // namespace serin::fuzz
