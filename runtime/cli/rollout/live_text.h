// live_text.h: shows a few lines on a terminal and updates them in place.
//
//   LiveText live;
//   if (LiveText::possible()) live.show("weight 5 %\nerr 3 of 11 bits\n");      // replaces the lines shown before
//
// It only moves the cursor and clears lines. Earlier output stays, and the last text stays however the program ends.
#pragma once

#include <cstddef>
#include <string>

namespace serin::cli {

class LiveText {
 public:
  /// Whether standard output is a terminal that can move its cursor.
  static bool possible();
  /// Text beyond the right and lower edge of the terminal is cut off.
  void show(const std::string& text);

 private:
  size_t shown_ = 0;  // lines, above the cursor
};

}  // namespace serin::cli
