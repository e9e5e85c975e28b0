# What `cmake --install build/release --prefix DIR` lays down: headers, both libraries, the trainer, a pkg-config file and
# a CMake package. Nothing in them says where they stand, so the prefix may be chosen late and moved afterwards.
include(CMakePackageConfigHelpers)
set(HALFSTEP_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/halfstep)

install(DIRECTORY engine/include/halfstep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS halfstep_shared EXPORT halfstep-shared DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS halfstep_static EXPORT halfstep-static DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET trainer)
    install(TARGETS trainer DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Two export sets: who links the shared library needs none of the development packages that the static one asks for.
foreach(kind IN ITEMS shared static)
    install(EXPORT halfstep-${kind} NAMESPACE halfstep:: FILE halfstep-${kind}.cmake
        DESTINATION ${HALFSTEP_PACKAGE_DIR})
endforeach()
configure_package_config_file(cmake/halfstep-config.cmake.in ${CMAKE_BINARY_DIR}/halfstep-config.cmake
    INSTALL_DESTINATION ${HALFSTEP_PACKAGE_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/halfstep-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/halfstep-config.cmake ${CMAKE_BINARY_DIR}/halfstep-config-version.cmake
    DESTINATION ${HALFSTEP_PACKAGE_DIR})

file(RELATIVE_PATH HALFSTEP_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" HALFSTEP_PC_PREFIX ${HALFSTEP_PC_PREFIX})
file(RELATIVE_PATH HALFSTEP_PC_LIBDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH HALFSTEP_PC_INCLUDEDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
list(JOIN HALFSTEP_OPENMP_FLAGS " " HALFSTEP_PC_OPENMP)
configure_file(cmake/halfstep.pc.in ${CMAKE_BINARY_DIR}/halfstep.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/halfstep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
