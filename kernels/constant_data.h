// constant_data.h: The elements of an operand that is known when a kernel is prepared: a weight.
//
//   if (!b.constant) return refuse(why, "b is computed");                             // asks only whether it is known
//   weights->get(b.constant_id, "layout", bytes, [&](std::byte* to) { pack(b.constant.as<float>(), to); });   // reads it unless packed
//
// Plain weights are not kept in memory after every kernel has packed them. as() fetches them from their source, which may be a file. They
// stay as long as this object or a copy of it: during prepare(). It throws the errors of fetching (no memory, a missing file); the engine
// handles those, kernels let them pass.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace serin::kernels {

/// One thread at a time.
class ConstantData {
 public:
  using Held = std::shared_ptr<const std::byte>;

  /// Unknown.
  ConstantData() = default;
  /// Memory that the caller keeps; null: unknown.
  ConstantData(const void* data) : held_(std::shared_ptr<const void>(), static_cast<const std::byte*>(data)) {}
  explicit ConstantData(std::function<Held()> fetch) : fetch_(std::move(fetch)) {}

  explicit operator bool() const { return held_ || fetch_; }
  template <class T>
  const T* as() const {
    if (!held_ && fetch_) held_ = fetch_();
    return reinterpret_cast<const T*>(held_.get());
  }

 private:
  std::function<Held()> fetch_;
  mutable Held held_;
};

}  // namespace serin::kernels
