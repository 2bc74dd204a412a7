# Debian packages, made by CPack: one for each component of DlockInstall.cmake and cli/CMakeLists.txt. For a tree
# configured by scripts/package; `cpack` in it makes them again.
set(DLOCK_PACKAGE_VERSION "${PROJECT_VERSION}" CACHE STRING "Version of the packages")
set(DLOCK_PACKAGE_TIME "0" CACHE STRING "When the sources were committed, in seconds since 1970")
set(DLOCK_PACKAGE_MAINTAINER "dlock maintainers <maintainers@dlock.invalid>" CACHE STRING "Name and address in the packages")
set(DLOCK_SITE "" CACHE PATH "What scripts/docs has made, for dlock-doc; without it, that has the pages alone")
set(packaging "${PROJECT_SOURCE_DIR}/packaging")
set(made "${PROJECT_BINARY_DIR}/packaging")

if(NOT BUILD_SHARED_LIBS OR NOT DLOCK_INSTALL_STATIC_TOO OR NOT DLOCK_BUILD_BENCH OR NOT DLOCK_BUILD_TORTURE OR
   NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  message(FATAL_ERROR "DLOCK_PACKAGES is for scripts/package, which sets more options")
endif()

# The name of the library's package shows which programs can use it.
set(library_package libdlock${DLOCK_SOVERSION})
set(package_dlock_library ${library_package})
set(package_dlock_development libdlock-dev)
set(package_dlock_command dlock)
set(package_dlock_bench dlock-bench)
set(package_dlock_documentation dlock-doc)
set(components dlock_library dlock_development dlock_command dlock_bench dlock_documentation)

# The content of each package of Debian.
execute_process(COMMAND date --utc "--date=@${DLOCK_PACKAGE_TIME}" --rfc-email OUTPUT_VARIABLE package_date
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
configure_file("${packaging}/changelog.in" "${made}/changelog" @ONLY)
foreach(component IN LISTS components)
  set(place "${CMAKE_INSTALL_DATADIR}/doc/${package_${component}}")
  install(FILES "${packaging}/copyright" "${made}/changelog" DESTINATION "${place}" COMPONENT ${component})
  set(overrides "${packaging}/overrides/${component}")
  if(EXISTS "${overrides}")
    install(FILES "${overrides}" DESTINATION "${CMAKE_INSTALL_DATADIR}/lintian/overrides"
      COMPONENT ${component} RENAME "${package_${component}}")
  endif()
endforeach()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples/deploy" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/dlock/examples"
  COMPONENT dlock_command)
set(place "${CMAKE_INSTALL_DATADIR}/doc/dlock-doc")
if(DLOCK_SITE)
  install(DIRECTORY "${DLOCK_SITE}/" DESTINATION "${place}/html" COMPONENT dlock_documentation)
else()
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${place}"
    COMPONENT dlock_documentation FILES_MATCHING REGEX "docs/[a-z-/]*\\.(md|json|svg)$|examples/.*" PATTERN site EXCLUDE)
  install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
    "${PROJECT_SOURCE_DIR}/CONTRIBUTING.md" "${PROJECT_SOURCE_DIR}/SECURITY.md"
    "${PROJECT_SOURCE_DIR}/CODE_OF_CONDUCT.md" DESTINATION "${place}" COMPONENT dlock_documentation)
endif()

# Programs linked to the library depend on its package. A trigger runs ldconfig.
file(CONFIGURE OUTPUT "${made}/shlibs" CONTENT "libdlock ${DLOCK_SOVERSION} ${library_package} (>= ${PROJECT_VERSION}~)\n")
file(CONFIGURE OUTPUT "${made}/triggers" CONTENT "activate-noawait ldconfig\n")

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_PACKAGE_NAME dlock)
set(CPACK_PACKAGE_CONTACT "${DLOCK_PACKAGE_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS "${packaging}/finish.cmake")
set(CPACK_PROJECT_CONFIG_FILE "${made}/cpack.cmake")
configure_file("${packaging}/cpack.cmake.in" "${made}/cpack.cmake" @ONLY)

set(CPACK_DEBIAN_PACKAGE_VERSION "${DLOCK_PACKAGE_VERSION}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)

set(about "One interface for distributed locks in Redis, ZooKeeper, etcd, PostgreSQL,
MariaDB, and files of one machine. Each lease carries a fencing token, and signals
its loss no later than it ends.")

set(CPACK_DEBIAN_DLOCK_LIBRARY_PACKAGE_NAME ${library_package})
set(CPACK_DEBIAN_DLOCK_LIBRARY_PACKAGE_SOURCE dlock)
set(CPACK_DEBIAN_DLOCK_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DLOCK_LIBRARY_PACKAGE_CONTROL_EXTRA "${made}/shlibs;${made}/triggers")
set(CPACK_DEBIAN_DLOCK_LIBRARY_DESCRIPTION "distributed locks for C++ - shared library
${about}
.
This package has what programs need that use the library.")

set(CPACK_DEBIAN_DLOCK_DEVELOPMENT_PACKAGE_NAME libdlock-dev)
set(CPACK_DEBIAN_DLOCK_DEVELOPMENT_PACKAGE_SOURCE dlock)
set(CPACK_DEBIAN_DLOCK_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DLOCK_DEVELOPMENT_DEPENDS dlock_library)
# The dependencies of a program linked to the static library.
set(CPACK_DEBIAN_DLOCK_DEVELOPMENT_PACKAGE_RECOMMENDS
  "libhiredis-dev, libmariadb-dev, libnghttp2-dev, libpq-dev, libssl-dev, libzookeeper-mt-dev")
set(CPACK_DEBIAN_DLOCK_DEVELOPMENT_PACKAGE_SUGGESTS dlock-doc)
set(CPACK_DEBIAN_DLOCK_DEVELOPMENT_DESCRIPTION "distributed locks for C++ - development files
${about}
.
This package has the headers, the static library, and the files for CMake and
pkg-config.")

set(CPACK_DEBIAN_DLOCK_COMMAND_PACKAGE_NAME dlock)
set(CPACK_DEBIAN_DLOCK_COMMAND_PACKAGE_SECTION utils)
set(CPACK_COMPONENT_DLOCK_COMMAND_DEPENDS dlock_library)
set(CPACK_DEBIAN_DLOCK_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/src")
set(CPACK_DEBIAN_DLOCK_COMMAND_PACKAGE_SUGGESTS "bash-completion, dlock-bench, dlock-doc")
set(CPACK_DEBIAN_DLOCK_COMMAND_DESCRIPTION "distributed locks for scripts and services
${about}
.
This package has the dlock command: it runs a program while it holds a lock or
leads an election, shows who holds one, and examines the service.")

set(CPACK_DEBIAN_DLOCK_BENCH_PACKAGE_NAME dlock-bench)
set(CPACK_DEBIAN_DLOCK_BENCH_PACKAGE_SOURCE dlock)
set(CPACK_DEBIAN_DLOCK_BENCH_PACKAGE_SECTION utils)
set(CPACK_COMPONENT_DLOCK_BENCH_DEPENDS dlock_command)
set(CPACK_DEBIAN_DLOCK_BENCH_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DLOCK_BENCH_DESCRIPTION "distributed locks - measurement and fault injection
${about}
.
This package has what \"dlock bench\" and \"dlock torture\" start: it measures lock
services, and injects faults to see whether their locks keep their promises.")

set(CPACK_DEBIAN_DLOCK_DOCUMENTATION_PACKAGE_NAME dlock-doc)
set(CPACK_DEBIAN_DLOCK_DOCUMENTATION_PACKAGE_SOURCE dlock)
set(CPACK_DEBIAN_DLOCK_DOCUMENTATION_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DLOCK_DOCUMENTATION_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DLOCK_DOCUMENTATION_DESCRIPTION "distributed locks for C++ - documentation
${about}
.
This package has the documents of the library and of the command.")

include(CPack)
