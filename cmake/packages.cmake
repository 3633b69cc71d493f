# How the program leaves the build folder: what `cmake --install` copies, and the tarball and the Debian package that cpack makes of it (deploy/README.md).
#
# Components: what has no name is the program with its plugins; `bundle` the shared libraries that a bare machine lacks; `contents` says what is there, so it comes last;
# `debian` leads from where Debian looks for files to a folder of our own, because the program looks for its plugins in ../lib; `cuda` and `nvidia`
# are in kernels/cuda/nvidia, `parquet` in runtime/datasets/parquet.
set(of_their_own "")
if(NOT SERIN_BUNDLE)
  set(of_their_own EXCLUDE_FROM_ALL)
endif()
# `cmake --install DIR --prefix P --strip`: bin/serin, and lib/ with what it opens or, bundled, needs.
install(TARGETS serin RUNTIME_DEPENDENCY_SET serin_needs RUNTIME DESTINATION bin)
install(RUNTIME_DEPENDENCY_SET serin_needs
        PRE_EXCLUDE_REGEXES "^(libc|libm|libdl|librt|libpthread|ld-linux-x86-64)\\.so" "^lib(cu|nv)" "^libdnnl\\."
        LIBRARY DESTINATION lib COMPONENT bundle ${of_their_own})

install(FILES LICENSE DESTINATION share/doc/serin COMPONENT contents)
install(CODE "execute_process(COMMAND \"${CMAKE_SOURCE_DIR}/deploy/packages/contents\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\" ${PROJECT_VERSION}
                COMMAND_ERROR_IS_FATAL ANY)" COMPONENT contents)

# Below /usr/lib/serin, which is where cpack_project.cmake puts the package.
install(FILES deploy/packages/copyright DESTINATION share/doc/serin COMPONENT debian EXCLUDE_FROM_ALL)
install(CODE [[
  set(usr "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/../..")
  file(MAKE_DIRECTORY "${usr}/bin" "${usr}/share/doc")
  file(CREATE_LINK ../lib/serin/bin/serin "${usr}/bin/serin" SYMBOLIC)
  file(CREATE_LINK ../../lib/serin/share/doc/serin "${usr}/share/doc/serin" SYMBOLIC)
]] COMPONENT debian EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/cpack_project.cmake)
set(CPACK_PACKAGE_CONTACT "the authors of Serin")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Serves ONNX models and rolls out new versions of them")
set(CPACK_PACKAGE_DESCRIPTION "A server for ONNX models, and a router that judges every answer of a new version, raises its traffic on evidence and rolls it back.")
set(CPACK_BUILD_FOLDER ${CMAKE_BINARY_DIR})
set(CPACK_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR})
string(REPLACE x86_64 amd64 CPACK_ARCHITECTURE ${CPACK_ARCHITECTURE})  # as Debian calls it
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # the packages that the program is linked with
set(CPACK_DEBIAN_PACKAGE_DEPENDS ca-certificates)  # read by the router's clients of webhooks and stores
include(CPack)
