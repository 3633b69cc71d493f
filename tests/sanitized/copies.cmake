# What reads from outside, once more under ASan and UBSan: beside the library L of such a folder an object library L_sanitized of the same sources, which
# tests/sanitized links instead of it. The engine, the kernels and the graph stay as they are: they would take longer than all of the rest, and to build, too
# (`tests/run --long` does it, in a folder of its own). What they allocate is watched all the same. Warnings are the ordinary build's to give.
set(sanitized_options -w -O1 -U_FORTIFY_SOURCE -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)

function(serin_sanitized_copy library)
  if(NOT BUILD_TESTING OR SERIN_SANITIZE)
    return()
  endif()
  add_library(${library}_sanitized OBJECT EXCLUDE_FROM_ALL)
  get_target_property(rooms ${library} SERIN_ROOMS)
  foreach(room ${rooms})
    get_target_property(sources ${room} SOURCES)
    target_sources(${library}_sanitized PRIVATE ${sources})
  endforeach()
  target_link_libraries(${library}_sanitized PRIVATE ${library}_needs)
  target_compile_options(${library}_sanitized PRIVATE ${sanitized_options})
  set_target_properties(${library}_sanitized PROPERTIES EXPORT_COMPILE_COMMANDS OFF)  # the linter looks at the library's own
  if(SERIN_UNITY)
    set_target_properties(${library}_sanitized PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${SERIN_UNITY_BATCH})
  endif()
endfunction()
