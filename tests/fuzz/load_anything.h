// load_anything.h: what a fuzzer asks of the loader: any bytes are read, optimised, planned and run, or refused. Nothing else may happen.
#pragma once

#include <cstddef>
#include <span>

namespace serin::fuzz {

/// Bounds are so tight that a file which costs seconds or gigabytes is a finding.
void load_anything(std::span<const std::byte> file);

}  // namespace serin::fuzz
