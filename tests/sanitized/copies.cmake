# What reads from outside, once more under ASan and UBSan: beside the library L of such a folder an object library L_sanitized of the same sources, which
# tests/sanitized links instead of it. The engine, the kernels and the graph stay as they are: they would take longer than all of the rest, and to build, too
# (`tests/run --long` does it, in a folder of its own). What they allocate is watched all the same. Warnings are the ordinary build's to give.
set(sanitized_options -w -O1 -U_FORTIFY_SOURCE -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)

function(serin_sanitized_copy library)
  if(NOT BUILD_TESTING OR SERIN_SANITIZE)
    return()
  endif()
  add_library(${library}_sanitized OBJECT EXCLUDE_FROM_ALL)
  foreach(property SOURCES LINK_LIBRARIES INCLUDE_DIRECTORIES COMPILE_DEFINITIONS)
    get_target_property(value ${library} ${property})
    if(value)
      set_target_properties(${library}_sanitized PROPERTIES ${property} "${value}")
    endif()
  endforeach()
  target_compile_options(${library}_sanitized PRIVATE ${sanitized_options})
  set_target_properties(${library}_sanitized PROPERTIES EXPORT_COMPILE_COMMANDS OFF)  # the linter looks at the library's own
endfunction()
