# What reads from outside, once more under ASan and UBSan: next to each room R of such a library an object library R_sanitized of the same sources, which
# tests/sanitized links instead of it. The engine, the kernels and the graph stay as they are: they would take longer than all of the rest, and to build, too
# (`tests/run --long` does it, in a folder of its own). What they allocate is watched all the same. Warnings are the ordinary build's to give.
# Without the checks of every pointer (null, alignment, object size): they take a third of the compiler's time, ASan sees most of what they see, and
# `--long` has them. Without optimisation: that takes another half, and the tests wait for servers more than they compute.
# Without optimisation simdjson's parsers have more members, and the other libraries of a program are compiled with it: it must not notice.
set(sanitized_options -w -O0 -DSIMDJSON_DEVELOPMENT_CHECKS=0 -U_FORTIFY_SOURCE -fsanitize=address,undefined
                      -fno-sanitize=vptr,null,alignment,object-size,returns-nonnull-attribute,nonnull-attribute -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)

function(serin_sanitized_copy library)
  if(NOT BUILD_TESTING OR SERIN_SANITIZE)
    return()
  endif()
  if(SERIN_UNITY AND NOT TARGET serin_sanitized_precompiled)  # a precompiled header fits the options that it was compiled with
    add_library(serin_sanitized_precompiled OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/cmake/precompiled.cc)
    target_link_libraries(serin_sanitized_precompiled PRIVATE serin_options Boost::headers fmt::fmt Threads::Threads)
    target_compile_options(serin_sanitized_precompiled PRIVATE ${sanitized_options})
    target_precompile_headers(serin_sanitized_precompiled PRIVATE ${CMAKE_SOURCE_DIR}/cmake/precompiled.h)
    set_target_properties(serin_sanitized_precompiled PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
    if(SERIN_CCACHE)
      set_target_properties(serin_sanitized_precompiled PROPERTIES CXX_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/cmake/precompile)
    endif()
  endif()
  get_target_property(rooms ${library} SERIN_ROOMS)
  foreach(room ${rooms})  # one by one: names of two rooms need not differ
    get_target_property(sources ${room} SOURCES)
    add_library(${room}_sanitized OBJECT EXCLUDE_FROM_ALL ${sources})
    target_link_libraries(${room}_sanitized PRIVATE ${library}_needs)
    target_compile_options(${room}_sanitized PRIVATE ${sanitized_options})
    set_target_properties(${room}_sanitized PROPERTIES EXPORT_COMPILE_COMMANDS OFF)  # the linter looks at the library's own
    if(SERIN_UNITY)
      set_target_properties(${room}_sanitized PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${SERIN_UNITY_BATCH})
      target_precompile_headers(${room}_sanitized REUSE_FROM serin_sanitized_precompiled)
    endif()
  endforeach()
endfunction()
