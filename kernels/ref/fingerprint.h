// fingerprint.h: the hash of texts that models of TensorFlow contain: weights are by bucket, so it is the same to the bit everywhere.
#pragma once

#include <cstdint>
#include <string_view>

namespace serin::kernels::ref {

/// As TensorFlow's StringToHashBucketFast computes it.
uint64_t fingerprint64(std::string_view text);
/// Of two hashes, in that order, as TensorFlow's SparseCross joins them.
uint64_t joined_fingerprint(uint64_t a, uint64_t b);

}  // namespace serin::kernels::ref
