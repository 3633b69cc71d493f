// plugin.cc: the one symbol of libserin_vision.so. No exception of OpenCV or Clipper crosses it, each is caught and becomes an error.

#include "runtime/steps/vision/opencv/plugin.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <opencv2/core.hpp>

#include "runtime/steps/vision/opencv/parts.h"

namespace serin::steps::vision {
namespace {

/// The same function with exceptions as errors.
template <auto kFunction>
struct Caught;

template <class R, class... Arguments, R (*kFunction)(Arguments...)>
struct Caught<kFunction> {
  static R call(Arguments... arguments) {
    try {
      return kFunction(arguments...);
    } catch (const std::bad_alloc&) {
      return Error{Code::kTooLarge, "OpenCV: there is not enough memory"};
    } catch (const std::exception& error) {
      return Error{Code::kInternal, fmt::format("OpenCV: {}", error.what())};
    }
  }
};

/// Instead of a line on stderr: what() of the exception says the same.
int stay_silent(int /*status*/, const char* /*function*/, const char* /*message*/, const char* /*file*/, int /*line*/, void* /*data*/) {
  return 0;
}

}  // namespace
}  // namespace serin::steps::vision

extern "C" __attribute__((visibility("default"))) bool serin_vision_plugin(uint32_t version, serin::steps::vision::Plugin* plugin) {
  using namespace serin::steps::vision;
  if (version != kPluginVersion) return false;
  try {
    cv::setNumThreads(1);  // threads are Serin's own
    cv::redirectError(stay_silent);
    *plugin = {.library = "OpenCV " + cv::getVersionString(),
               .find_text_boxes = Caught<find_text_boxes>::call,
               .crop = Caught<crop>::call,
               .resize_cubic = Caught<resize_cubic>::call};
    return true;
  } catch (const std::exception&) {
    return false;
  }
}
