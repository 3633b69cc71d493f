# Read by cpack once for each kind of package: what is in it, and where (packages.cmake names the components).
function(serin_components)
  set(found "")
  foreach(component IN LISTS ARGN)
    list(APPEND found "${CPACK_BUILD_FOLDER}" serin "${component}" /)
  endforeach()
  set(CPACK_INSTALL_CMAKE_PROJECTS "${found}" PARENT_SCOPE)
endfunction()

if(CPACK_GENERATOR STREQUAL "DEB")
  serin_components(Unspecified debian contents)
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr/lib/serin)
else()  # one folder, unpacked anywhere
  serin_components(Unspecified bundle contents)
  set(CPACK_PACKAGE_FILE_NAME "serin-${CPACK_PACKAGE_VERSION}-linux-${CPACK_ARCHITECTURE}")
endif()
