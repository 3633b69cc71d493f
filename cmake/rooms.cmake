# A house is a library; its rooms are the folders that it is compiled from. Each room is a target, so that one can be built by itself.
#
#   serin_house(serin_net PUBLIC target... PRIVATE target...)   in the folder of the house; then add_subdirectory() of each room
#   serin_room(serin_net message)                               in the folder of a room: all of its .cc files, and nothing of its subfolders
#   serin_library(serin_samples PUBLIC target... PRIVATE target...)   a house of one room
#
# With SERIN_UNITY sources are compiled in batches, behind a precompiled header of what nearly all of them include.
option(SERIN_UNITY "Compile sources in batches and with precompiled headers, in half of the time; OFF shows each source by itself" ON)
set(SERIN_UNITY_BATCH 50)  # a whole room: in batches of 12 the same rooms took a quarter longer, since each batch has the same templates once more

function(serin_house name)
  cmake_parse_arguments(arg "" "" "PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PUBLIC serin_options ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  add_library(${name}_needs INTERFACE)  # what its rooms are compiled with
  target_link_libraries(${name}_needs INTERFACE serin_options ${arg_PUBLIC} ${arg_PRIVATE})
endfunction()

function(serin_room house room)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(name ${house}_${room})
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PRIVATE ${house}_needs)
  target_sources(${house} PRIVATE $<TARGET_OBJECTS:${name}>)
  set_property(TARGET ${house} APPEND PROPERTY SERIN_ROOMS ${name})
  serin_batches(${name})
  if(SERIN_UNITY)
    # GCC 12 sees such things in the standard library where it inlines much (its bug 105329, for one); without batches they are on.
    target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-stringop-overread -Wno-maybe-uninitialized)
  endif()
endfunction()

macro(serin_library name)
  serin_house(${name} ${ARGN})
  serin_room(${name} room)
endmacro()

# Compiles a target in batches. The precompiled header is compiled once, for all of them.
function(serin_batches name)
  if(NOT SERIN_UNITY)
    return()
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${SERIN_UNITY_BATCH})
  target_compile_options(${name} PRIVATE -Wno-subobject-linkage)  # false in a batch: it takes each source for a header
  target_precompile_headers(${name} REUSE_FROM serin_precompiled)
  get_target_property(sources ${name} SOURCES)
  foreach(source ${sources})  # a precompiled header fits the options that it was compiled with
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    if(options)
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

# serin_embed(TARGET FILE HEADER FUNCTION): FUNCTION, which HEADER declares, returns the text of FILE; changing the file builds it anew.
function(serin_embed target file header function)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(REGEX REPLACE "^.*::" "" name ${function})
  file(CONFIGURE OUTPUT ${name}.cc @ONLY CONTENT
       "// Generated from @file@.\n#include \"@header@\"\n\nstd::string_view @function@() {\n  return R\"embedded(@text@)embedded\";\n}\n")
  target_sources(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
endfunction()
