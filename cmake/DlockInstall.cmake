# What `cmake --install` puts where, for find_package(dlock) and for pkg-config.
include(CMakePackageConfigHelpers)

set(dlock_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/dlock")

install(TARGETS dlock EXPORT dlockTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT dlockTargets NAMESPACE dlock:: DESTINATION "${dlock_package_dir}")

# An export set of its own, so that only those who ask for the component need GoogleTest.
if(TARGET dlock_conformance)
  install(TARGETS dlock_conformance dlock_conformance_program EXPORT dlockConformanceTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT dlockConformanceTargets NAMESPACE dlock:: DESTINATION "${dlock_package_dir}")
endif()

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/dlockConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/package/dlockConfig.cmake" INSTALL_DESTINATION "${dlock_package_dir}"
  NO_SET_AND_CHECK_MACRO)
# As the shared library's SOVERSION has it.
set(dlock_compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(dlock_compatibility SameMinorVersion)
endif()
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/dlockConfigVersion.cmake"
  COMPATIBILITY ${dlock_compatibility})
install(FILES "${PROJECT_BINARY_DIR}/package/dlockConfig.cmake"
  "${PROJECT_BINARY_DIR}/package/dlockConfigVersion.cmake" DESTINATION "${dlock_package_dir}")

# The .pc file finds its prefix from where it lies, so that an installed tree can be moved.
file(RELATIVE_PATH dlock_pc_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_LIBDIR dlock_libdir_is_absolute)
if(dlock_libdir_is_absolute)
  set(dlock_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  string(REGEX REPLACE "/$" "" dlock_pc_prefix "${dlock_pc_prefix}")
  set(dlock_pc_prefix "\${pcfiledir}/${dlock_pc_prefix}")
endif()
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY "\${prefix}" OUTPUT_VARIABLE dlock_pc_libdir)
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_INCLUDEDIR BASE_DIRECTORY "\${prefix}" OUTPUT_VARIABLE dlock_pc_includedir)
list(JOIN DLOCK_PRIVATE_LIBRARIES " " dlock_pc_private)
string(APPEND dlock_pc_private " -pthread")
# Where there is only the static library, its users need these without asking for them by --static.
set(dlock_pc_libs "")
get_target_property(dlock_type dlock TYPE)
if(dlock_type STREQUAL "STATIC_LIBRARY")
  set(dlock_pc_libs " ${dlock_pc_private}")
  set(dlock_pc_private "")
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/dlock.pc.in" "${PROJECT_BINARY_DIR}/package/dlock.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/dlock.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
