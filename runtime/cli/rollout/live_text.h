// live_text.h: a few lines on a terminal that are written again in place.
//
//   LiveText live;
//   if (LiveText::possible()) live.show("weight 5 %\nerr 3 of 11 bits\n");      // replaces what it has shown before
//
// Only the cursor is moved and lines are cleared: what stood above stays, the last text stays when the program ends, however it ends.
#pragma once

#include <cstddef>
#include <string>

namespace serin::cli {

class LiveText {
 public:
  /// Whether standard output is a terminal that can move its cursor.
  static bool possible();
  /// Cut off where the terminal ends, on the right and below.
  void show(const std::string& text);

 private:
  size_t shown_ = 0;  // lines, above the cursor
};

}  // namespace serin::cli
