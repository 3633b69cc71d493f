# Read by cpack once for each kind of package: what is in it, and where (packages.cmake names the components). With -D CPACK_PART=parquet it is the
# plugin for Parquet files, to be added to the program.
function(serin_components)
  set(found "")
  foreach(component IN LISTS ARGN)
    list(APPEND found "${CPACK_BUILD_FOLDER}" serin "${component}" /)
  endforeach()
  set(CPACK_INSTALL_CMAKE_PROJECTS "${found}" PARENT_SCOPE)
endfunction()

set(serin_name serin)
set(serin_debian Unspecified debian contents)
set(serin_bundle Unspecified bundle contents)
if(CPACK_PART STREQUAL "parquet")
  set(serin_name serin-parquet)
  set(serin_debian parquet)
  set(serin_bundle parquet)
  set(CPACK_DEBIAN_PACKAGE_NAME ${serin_name})
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "serin (= ${CPACK_PACKAGE_VERSION})")  # both sides of a plugin are of one build
  set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "The plugin with which serin reads Parquet files")
endif()

if(CPACK_GENERATOR STREQUAL "DEB")
  serin_components(${serin_debian})
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr/lib/serin)
else()  # one folder, unpacked anywhere
  serin_components(${serin_bundle})
  set(CPACK_PACKAGE_FILE_NAME "${serin_name}-${CPACK_PACKAGE_VERSION}-linux-${CPACK_ARCHITECTURE}")
endif()
