// unreachable.cc: functions of OpenGL and LAPACK that OpenCV's core refers to, and that no code of the plugin reaches.
//
// OpenCV calls LAPACK for matrices with more than a hundred rows, and OpenGL for windows. With these definitions the plugin needs neither:
// LAPACK and its Fortran run time have 11 MB, OpenGL's libraries bring LLVM. One that is called after all throws, which becomes an error of
// the request (plugin.cc).

#include <stdexcept>
#include <string>

namespace {

[[noreturn]] void unreachable(const char* name) { throw std::logic_error(std::string(name) + " is not part of libserin_vision.so"); }

}  // namespace

#define SERIN_UNREACHABLE(name) \
  extern "C" void name() { unreachable(#name); }

// NOLINTBEGIN(readability-identifier-naming): the names are theirs
SERIN_UNREACHABLE(glXGetProcAddressARB)
SERIN_UNREACHABLE(cblas_sgemm)
SERIN_UNREACHABLE(cblas_dgemm)
SERIN_UNREACHABLE(cblas_cgemm)
SERIN_UNREACHABLE(cblas_zgemm)
SERIN_UNREACHABLE(sgels_)
SERIN_UNREACHABLE(dgels_)
SERIN_UNREACHABLE(sgeqrf_)
SERIN_UNREACHABLE(dgeqrf_)
SERIN_UNREACHABLE(sgesdd_)
SERIN_UNREACHABLE(dgesdd_)
SERIN_UNREACHABLE(sgesv_)
SERIN_UNREACHABLE(dgesv_)
SERIN_UNREACHABLE(sgetrf_)
SERIN_UNREACHABLE(dgetrf_)
SERIN_UNREACHABLE(sposv_)
SERIN_UNREACHABLE(dposv_)
SERIN_UNREACHABLE(spotrf_)
SERIN_UNREACHABLE(dpotrf_)
// NOLINTEND(readability-identifier-naming)

#undef SERIN_UNREACHABLE
