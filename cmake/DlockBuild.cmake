# Helpers for the targets of this tree. Nothing here reaches those who use the installed library.
option(DLOCK_WERROR "Treat warnings as errors" OFF)
set(DLOCK_SANITIZE "" CACHE STRING "Sanitizers for everything built here, e.g. address,undefined or thread")

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# An installed program finds the shared library from where it lies itself, so that the tree can be moved.
if(PROJECT_IS_TOP_LEVEL AND BUILD_SHARED_LIBS AND NOT DEFINED CMAKE_INSTALL_RPATH)
  file(RELATIVE_PATH dlock_rpath "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  set(CMAKE_INSTALL_RPATH "$ORIGIN/${dlock_rpath}")
endif()

# Developer flags; attached PRIVATE or through BUILD_INTERFACE, never exported.
add_library(dlock_developer_flags INTERFACE)
target_compile_options(dlock_developer_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # False alarms of GCC 12 in std::string (GCC bug 105651) and in std::optional and its like (bug 80635).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  $<$<BOOL:${DLOCK_WERROR}>:-Werror>)
if(DLOCK_SANITIZE)
  # Not the check of virtual tables: it opens a pipe to see whether memory is readable, so it reports good objects where a
  # test has used up the descriptors.
  target_compile_options(dlock_developer_flags INTERFACE -fsanitize=${DLOCK_SANITIZE} -fno-sanitize=vptr
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(dlock_developer_flags INTERFACE -fsanitize=${DLOCK_SANITIZE})
  # Asio has memory fences, which ThreadSanitizer does not model. Nothing here relies on them alone.
  target_compile_options(dlock_developer_flags INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
endif()

# Common properties of a target of this tree.
function(dlock_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:dlock_developer_flags>)
endfunction()

# dlock_add_test(NAME [NO_MAIN] [PROCESSORS n] [SHARDS n] SOURCES file... [LIBRARIES target...] [LABELS label...])
# One GoogleTest executable; each of its tests becomes one for ctest, which takes so many processors when it runs. Where
# a process has much to prepare, ctest runs it in so many shards instead, and the tests of a shard share a process.
function(dlock_add_test name)
  cmake_parse_arguments(arg "NO_MAIN" "PROCESSORS;SHARDS" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  dlock_target(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE dlock::dlock GTest::gmock GTest::gtest ${arg_LIBRARIES})
  if(NOT arg_NO_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  set(labels unit)
  if(arg_LABELS)
    set(labels ${arg_LABELS})
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  if(arg_SHARDS)
    foreach(shard RANGE 1 ${arg_SHARDS})
      math(EXPR index "${shard} - 1")
      add_test(NAME ${name}.${shard}_of_${arg_SHARDS} COMMAND ${name})
      set_tests_properties(${name}.${shard}_of_${arg_SHARDS} PROPERTIES LABELS "${labels}" TIMEOUT 600
        PROCESSORS ${arg_PROCESSORS} ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${index}")
    endforeach()
    return()
  endif()
  gtest_discover_tests(${name} PROPERTIES LABELS "${labels}" TIMEOUT 120 PROCESSORS ${arg_PROCESSORS}
    DISCOVERY_TIMEOUT 60)
endfunction()
