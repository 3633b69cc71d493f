// text_box_options.h: the settings of PaddleOCR's DBPostProcess.
#pragma once

namespace serin::steps {

/// In brackets the names in PaddleOCR.
struct TextBoxOptions {
  float threshold = 0.3F;      ///< of a pixel (thresh)
  float box_threshold = 0.6F;  ///< of the mean in a box (box_thresh)
  int most = 1000;             ///< contours that are looked at (max_candidates)
  float unclip_ratio = 1.5F;   ///< how far a box grows: area x ratio / circumference
  bool dilate = false;         ///< use_dilation
  bool slow_score = false;     ///< score_mode: the mean within the contour instead of within its rectangle

  friend bool operator==(const TextBoxOptions&, const TextBoxOptions&) = default;
};

}  // namespace serin::steps
