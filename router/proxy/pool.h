// pool.h: Objects of one io thread that are used again and again: a request allocates none.
#pragma once

#include <memory>
#include <vector>

namespace serin::router {

class Lane;

/// T(lane, pool) is made on first use. An object gives itself back when nothing refers to it any more.
template <class T>
class Pool {
 public:
  explicit Pool(Lane& lane) : lane_(lane) {}

  T& take() {
    if (free_.empty()) return *all_.emplace_back(std::make_unique<T>(lane_, *this));
    T& taken = *free_.back();
    free_.pop_back();
    return taken;
  }
  void give_back(T& object) { free_.push_back(&object); }

 private:
  Lane& lane_;
  std::vector<std::unique_ptr<T>> all_;
  std::vector<T*> free_;
};

}  // namespace serin::router
