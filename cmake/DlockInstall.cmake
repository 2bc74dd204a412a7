# The files that `cmake --install` installs, for find_package(dlock) and for pkg-config.
include(CMakePackageConfigHelpers)

set(dlock_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/dlock")

install(TARGETS dlock EXPORT dlockTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dlock_development
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dlock_library NAMELINK_COMPONENT dlock_development
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT dlock_library
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dlock_development
  FILE_SET opt_in_headers DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dlock_development)
get_target_property(dlock_type dlock TYPE)
set(dlock_static_too FALSE)
if(DLOCK_INSTALL_STATIC_TOO AND dlock_type STREQUAL "SHARED_LIBRARY")
  # No source is compiled twice: the library's objects are position-independent in any build.
  set(dlock_static_too TRUE)
  find_package(Threads REQUIRED)
  add_library(dlock_static STATIC $<TARGET_OBJECTS:dlock>)
  dlock_target(dlock_static)
  get_target_property(dlock_uses dlock LINK_LIBRARIES)
  target_link_libraries(dlock_static PRIVATE ${dlock_uses})
  target_include_directories(dlock_static INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  set_target_properties(dlock_static PROPERTIES OUTPUT_NAME dlock EXPORT_NAME static LINKER_LANGUAGE CXX)
  install(TARGETS dlock_static EXPORT dlockTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dlock_development)
endif()
install(EXPORT dlockTargets NAMESPACE dlock:: DESTINATION "${dlock_package_dir}" COMPONENT dlock_development)

# A separate export set, so that only users of the component need GoogleTest.
if(TARGET dlock_conformance)
  install(TARGETS dlock_conformance dlock_conformance_program EXPORT dlockConformanceTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dlock_conformance
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dlock_conformance
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT dlock_conformance
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dlock_conformance)
  install(EXPORT dlockConformanceTargets NAMESPACE dlock:: DESTINATION "${dlock_package_dir}"
    COMPONENT dlock_conformance)
endif()

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/dlockConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/package/dlockConfig.cmake" INSTALL_DESTINATION "${dlock_package_dir}"
  NO_SET_AND_CHECK_MACRO)
# The same version as in the shared library's SOVERSION.
set(dlock_compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(dlock_compatibility SameMinorVersion)
endif()
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/dlockConfigVersion.cmake"
  COMPATIBILITY ${dlock_compatibility})
install(FILES "${PROJECT_BINARY_DIR}/package/dlockConfig.cmake"
  "${PROJECT_BINARY_DIR}/package/dlockConfigVersion.cmake" DESTINATION "${dlock_package_dir}"
  COMPONENT dlock_development)

# The .pc file finds its prefix relative to its own path, so that an installed tree can be moved.
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
# If there is only the static library, its users need these without --static.
set(dlock_pc_name dlock)
set(dlock_pc_libs " -ldlock")
if(dlock_type STREQUAL "STATIC_LIBRARY")
  string(APPEND dlock_pc_libs " ${dlock_pc_private}")
  set(dlock_pc_private "")
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/dlock.pc.in" "${PROJECT_BINARY_DIR}/package/dlock.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/dlock.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
  COMPONENT dlock_development)
# If there is a shared library, too, the linker would not use the static one.
if(dlock_static_too)
  set(dlock_pc_name dlock-static)
  set(dlock_pc_libs " -l:libdlock.a ${dlock_pc_private}")
  set(dlock_pc_private "")
  configure_file("${CMAKE_CURRENT_LIST_DIR}/dlock.pc.in" "${PROJECT_BINARY_DIR}/package/dlock-static.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/package/dlock-static.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
    COMPONENT dlock_development)
endif()
