// recently_used.h: a list of a few things, of which the least recently used goes first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <utility>

namespace serin {

/// Searched from the most recently used one, so it suits few entries, or entries that a separate index finds. Not thread-safe. An entry
/// does not move in memory.
template <class T>
class RecentlyUsed {
 public:
  using Iterator = typename std::list<T>::iterator;

  /// The first entry that matches, which counts as used now. Null: none matches.
  template <class Matches>
  T* find(Matches matches) {
    const auto found = std::find_if(entries_.begin(), entries_.end(), matches);
    if (found == entries_.end()) return nullptr;
    use(found);
    return &*found;
  }
  /// The entry counts as used now.
  void use(Iterator entry) { entries_.splice(entries_.begin(), entries_, entry); }
  T& add(T entry) { return entries_.emplace_front(std::move(entry)); }
  /// Requires an entry.
  void drop_oldest() { entries_.pop_back(); }
  Iterator erase(Iterator entry) { return entries_.erase(entry); }
  void clear() { entries_.clear(); }

  /// The most recently used is first, the oldest last.
  Iterator begin() { return entries_.begin(); }
  Iterator end() { return entries_.end(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

 private:
  std::list<T> entries_;
};

}  // namespace serin
