# What building libserin_cuda.so needs: the CUDA 13 compiler, cuBLASLt, cuDNN 9 and cudnn-frontend's headers. They come from PyPI's wheels
# (deploy/install-deps --cuda) or from an installed toolkit: leave SERIN_CUDA_WHEELS empty then.
#
# The wheels are no toolkit as nvcc expects it: it looks for its parts beside bin/.. and in lib64, and the libraries lack the names that a linker
# looks for. A folder of links mends that. CMake 3.25 knows neither CUDA 13 nor C++20 for nvcc, so both are said by hand.
set(SERIN_CUDA_WHEELS "${CMAKE_SOURCE_DIR}/.deps/cuda" CACHE PATH "Folder of the nvidia wheels; empty: an installed toolkit")

if(SERIN_CUDA_WHEELS)
  set(cu "${SERIN_CUDA_WHEELS}/nvidia/cu13")
  if(NOT EXISTS "${cu}/bin/nvcc")
    message(FATAL_ERROR "SERIN_CUDA_WHEELS=${SERIN_CUDA_WHEELS} holds no nvidia-cuda-nvcc; run deploy/install-deps --cuda")
  endif()
  set(view "${CMAKE_BINARY_DIR}/cuda-toolkit")
  file(MAKE_DIRECTORY "${view}/bin" "${view}/lib64")  # bin is a folder of its own: nvcc takes bin/.. for its root
  file(GLOB tools RELATIVE "${cu}" "${cu}/include" "${cu}/nvvm" "${cu}/bin/*")
  foreach(tool IN LISTS tools)
    file(CREATE_LINK "${cu}/${tool}" "${view}/${tool}" SYMBOLIC)
  endforeach()
  file(GLOB libraries "${cu}/lib/lib*" "${SERIN_CUDA_WHEELS}/nvidia/cudnn/lib/lib*")
  foreach(library IN LISTS libraries)
    get_filename_component(name "${library}" NAME)
    file(CREATE_LINK "${library}" "${view}/lib64/${name}" SYMBOLIC)
    if(name MATCHES "^(lib[A-Za-z_]+\\.so)\\.[0-9]+$")
      file(CREATE_LINK "${library}" "${view}/lib64/${CMAKE_MATCH_1}" SYMBOLIC)
    endif()
  endforeach()
  set(CMAKE_CUDA_COMPILER "${view}/bin/nvcc" CACHE FILEPATH "" FORCE)
  set(hints "${view}" "${SERIN_CUDA_WHEELS}/nvidia/cudnn" "${SERIN_CUDA_WHEELS}")
endif()

set(CMAKE_CUDA_ARCHITECTURES OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY None)
if(SERIN_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${SERIN_CCACHE})
endif()
enable_language(CUDA)
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
set(SERIN_CUDA_HOST_OPTIONS "")
if(SERIN_CUDA_QUICK)  # cudnn-frontend reads and writes graphs as JSON, which nobody here asks for and which takes half of its time to compile
  set(CMAKE_CUDA_FLAGS_RELEASE "-O0 -Xcicc=-O1 -Xptxas=-O0")
  set(SERIN_CUDA_HOST_OPTIONS -O0 -g0 -DCUDNN_FRONTEND_SKIP_JSON_LIB)
endif()
if(NOT SERIN_CUDA_WHEELS)
  get_filename_component(nvcc "${CMAKE_CUDA_COMPILER}" REALPATH)
  get_filename_component(hints "${nvcc}/../.." ABSOLUTE)
endif()

foreach(pair cudart_static:cuda_runtime.h cublasLt:cublasLt.h nvrtc:nvrtc.h cudnn:cudnn.h)
  string(REGEX MATCH "^(.+):(.+)$" _ ${pair})
  set(name ${CMAKE_MATCH_1})
  set(header ${CMAKE_MATCH_2})
  find_library(SERIN_${name} ${name} HINTS ${hints} PATH_SUFFIXES lib64 lib REQUIRED)
  find_path(SERIN_${name}_INCLUDE ${header} HINTS ${hints} PATH_SUFFIXES include REQUIRED)
  add_library(cuda::${name} UNKNOWN IMPORTED)
  set_target_properties(cuda::${name} PROPERTIES IMPORTED_LOCATION "${SERIN_${name}}" INTERFACE_INCLUDE_DIRECTORIES "${SERIN_${name}_INCLUDE}")
endforeach()
find_path(SERIN_cudnn_frontend_INCLUDE cudnn_frontend.h HINTS ${hints} PATH_SUFFIXES include REQUIRED)

# The options of a .cu: one machine code for each architecture, PTX where it is asked for.
# Compressed for size, seven architectures take less than one does otherwise. Lines of the source, which profilers show, double it again.
set(SERIN_CUDA_OPTIONS --expt-relaxed-constexpr --compress-mode=size --diag-suppress=186)  # 186: unsigned numbers compared with 0, in templates for all
list(APPEND SERIN_CUDA_OPTIONS $<$<CONFIG:RelWithDebInfo>:-lineinfo>)
foreach(architecture IN LISTS SERIN_CUDA_ARCHITECTURES)
  if(architecture STREQUAL ptx)
    list(APPEND SERIN_CUDA_OPTIONS "-gencode=arch=compute_${last},code=compute_${last}")
  else()
    list(APPEND SERIN_CUDA_OPTIONS "-gencode=arch=compute_${architecture},code=sm_${architecture}")
    set(last ${architecture})
  endif()
endforeach()
