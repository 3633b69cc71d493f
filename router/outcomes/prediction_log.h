// prediction_log.h: Lines that are only ever appended, in notes of the store, while the oldest ones go. Knows nothing of what they say.
//
//   const uint32_t segment = log.append(line);              // in memory; on an io thread
//   log.keep_from(segment);                                 // lines of older segments are of no use any more
//   auto notes = log.unwritten();                           // every two seconds: for the store
//   if (!write(notes)) log.write_again(std::move(notes));
//
// A segment is a note. One that is full never changes, and only the last one is written again and again, so little is written for each line.
// The note of a segment that is of no use is emptied, and its place is taken again: there are as many notes as are needed at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace serin::router {

/// Not thread-safe.
class PredictionLog {
 public:
  static constexpr size_t kSegment = size_t{128} << 10;  ///< bytes; a longer line has one of its own
  static constexpr size_t kMostUnwritten = 128;          ///< segments in memory; while the store takes none, the oldest are given up

  /// The text of a place in the store; empty: it has none.
  struct Note {
    size_t place = 0;
    std::string text = {};
    uint32_t segment = 0;
  };
  struct Line {
    std::string text;
    uint32_t segment = 0;
  };

  /// `line` is without its end. Returns its segment; numbers of segments rise.
  uint32_t append(std::string_view line);
  void keep_from(uint32_t segment);
  void keep_none() { keep_from(next_); }

  std::vector<Note> unwritten();
  void write_again(std::vector<Note> notes);
  /// Notes have places below this number.
  size_t places() const { return places_; }

  /// Before anything else: all that the store has. Returns the lines, oldest first.
  std::vector<Line> restore(std::vector<Note> notes);

 private:
  struct Segment {
    uint32_t number = 0;
    size_t place = 0;
    bool changed = false;   // since unwritten()
    std::string text = {};  // of the last one, and of those that are not written yet
  };
  void open();
  void give_up_oldest();

  std::deque<Segment> segments_;  // oldest first; the last one takes lines
  std::set<size_t> free_;         // places without a segment
  std::set<size_t> to_empty_;     // of these, those whose notes have an old text
  size_t places_ = 0;
  uint32_t next_ = 0;
};

}  // namespace serin::router
