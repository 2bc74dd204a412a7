# Helpers for the targets of this tree. Nothing here affects users of the installed library.
option(DLOCK_WERROR "Treat warnings as errors" OFF)
set(DLOCK_LIBRARY_COMPILE_OPTIONS "" CACHE STRING
  "Further options for compiling the library, the command and the checker of histories")
set(DLOCK_SANITIZE "" CACHE STRING "Sanitizers for everything built here, e.g. address,undefined or thread")
set(DLOCK_SANITIZE_NOT "vptr" CACHE STRING "Parts of these that are left out")
set(DLOCK_SANITIZE_TESTS "${DLOCK_SANITIZE}" CACHE STRING "Sanitizers for tests and examples, if not the same ones")

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# An installed program finds the shared library relative to its own path, so that the tree can be moved.
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
  # In a unity build, the local names of one source are visible in the next, so -Wshadow would warn without reason.
  $<$<BOOL:${CMAKE_UNITY_BUILD}>:-Wno-shadow>
  $<$<BOOL:${DLOCK_WERROR}>:-Werror>)
# hiredis wants it; with it everywhere, one set of precompiled headers is good for all tests.
target_compile_definitions(dlock_developer_flags INTERFACE _FILE_OFFSET_BITS=64)
if(DLOCK_BUILD_TESTS AND CMAKE_BUILD_TYPE STREQUAL "Debug")
  # The standard library checks preconditions that sanitizers do not see, such as that of std::optional's operator*.
  target_compile_definitions(dlock_developer_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(DLOCK_SANITIZE)
  # Not the check of virtual tables: it opens a pipe to test whether memory is readable, so it reports good objects
  # while a test has used up the descriptors.
  target_compile_options(dlock_developer_flags INTERFACE
    -fsanitize=$<TARGET_PROPERTY:dlock_sanitize> -fno-sanitize=${DLOCK_SANITIZE_NOT}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(dlock_developer_flags INTERFACE -fsanitize=${DLOCK_SANITIZE})
  # Asio has memory fences, which ThreadSanitizer does not model. Nothing here relies on them alone.
  target_compile_options(dlock_developer_flags INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
endif()

# Common properties of a target of this tree.
function(dlock_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF dlock_sanitize "${DLOCK_SANITIZE}")
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE here)
  if(here MATCHES "^(tests|examples)")
    set_target_properties(${target} PROPERTIES dlock_sanitize "${DLOCK_SANITIZE_TESTS}")
  endif()
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:dlock_developer_flags>)
endfunction()

# Precompiles the headers that most sources include. Like a unity build, that hides missing includes, so there must also
# be a build without it.
option(DLOCK_PRECOMPILE_HEADERS "Precompile the headers that most sources include" OFF)
set(dlock_standard_headers <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <deque> <functional>
  <map> <memory> <mutex> <optional> <set> <stop_token> <string> <string_view> <system_error> <thread> <unordered_map>
  <utility> <vector>)

# Precompiled headers must be identical each time, for ccache.
function(dlock_steady_precompiled target)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
endfunction()

# dlock_precompile(TARGET header...): for this target alone. In a unity build it would have one or two users.
function(dlock_precompile target)
  if(DLOCK_PRECOMPILE_HEADERS AND NOT CMAKE_UNITY_BUILD)
    target_precompile_headers(${target} PRIVATE ${dlock_standard_headers} ${ARGN})
    dlock_steady_precompiled(${target})
  endif()
endfunction()

# dlock_precompile_test(TARGET), dlock_precompile_program(TARGET): one set of headers for all tests, and one for small
# programs and libraries without GoogleTest.
function(dlock_precompile_test target)
  dlock_reuse_precompiled(${target} dlock_test_headers LIBRARIES GTest::gtest
    HEADERS <gtest/gtest.h> <dlock/spi/backend.hpp> <dlock/dlock.hpp> <dlock/spi/executor.hpp>)
endfunction()
function(dlock_precompile_program target)
  dlock_reuse_precompiled(${target} dlock_program_headers HEADERS <dlock/dlock.hpp>)
endfunction()
function(dlock_reuse_precompiled target owner)
  cmake_parse_arguments(arg "" "" "LIBRARIES;HEADERS" ${ARGN})
  if(NOT DLOCK_PRECOMPILE_HEADERS)
    return()
  endif()
  if(NOT TARGET ${owner})
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${owner}.cpp" CONTENT "")
    add_library(${owner} OBJECT "${PROJECT_BINARY_DIR}/${owner}.cpp")
    dlock_target(${owner})
    target_link_libraries(${owner} PRIVATE dlock::dlock ${arg_LIBRARIES})
    target_precompile_headers(${owner} PRIVATE ${dlock_standard_headers} ${arg_HEADERS})
    dlock_steady_precompiled(${owner})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  dlock_steady_precompiled(${target})
endfunction()

# Which directories below tests/ are built, as a regular expression: "unit/core|conformance/redis".
set(DLOCK_TEST_ROOMS "." CACHE STRING "Regular expression of the directories below tests/ that are built")

# dlock_add_rooms(DIRECTORY...): adds those of these directories whose tests are wanted.
function(dlock_add_rooms)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/tests" OUTPUT_VARIABLE here)
  foreach(room IN LISTS ARGN)
    cmake_path(APPEND here "${room}" OUTPUT_VARIABLE path)
    cmake_path(NORMAL_PATH path)
    if(path MATCHES "${DLOCK_TEST_ROOMS}")
      add_subdirectory(${room})
    endif()
  endforeach()
endfunction()

# A process for each test shows that tests do not depend on each other; starting them all takes time, especially with
# sanitizers.
option(DLOCK_TESTS_APART "Let ctest run each test in a process of its own" ON)

# dlock_add_test(NAME [NO_MAIN] [APART] [TIMEOUT seconds] [SHARDS n] SOURCES file... [LIBRARIES target...]
#   [LABELS label...])
# One GoogleTest executable; each of its tests becomes one for ctest (with APART, in any build). If a process has much
# to prepare, ctest runs it in so many shards instead, and the tests of a shard share a process.
function(dlock_add_test name)
  cmake_parse_arguments(arg "NO_MAIN;APART" "SHARDS;TIMEOUT" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  dlock_target(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE dlock::dlock GTest::gmock GTest::gtest ${arg_LIBRARIES})
  dlock_precompile_test(${name})
  if(NOT arg_NO_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  set(labels unit)
  if(arg_LABELS)
    set(labels ${arg_LABELS})
  endif()
  set(apart "")
  if(arg_APART)
    set(apart APART)
  endif()
  dlock_discover_tests(${name} ${apart} LABELS ${labels} TIMEOUT ${arg_TIMEOUT} SHARDS ${arg_SHARDS})
endfunction()

# dlock_discover_tests(PROGRAM [APART] LABELS label... [TIMEOUT seconds] [SHARDS n])
# The tests of a program: each in its own process, or, in builds that want that and with SHARDS given, in so many
# shards. ctest starts those first that may take longest.
function(dlock_discover_tests program)
  cmake_parse_arguments(arg "APART" "TIMEOUT;SHARDS" "LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(NOT arg_SHARDS AND NOT arg_APART AND NOT DLOCK_TESTS_APART)
    set(arg_SHARDS 1)
  endif()
  if(arg_SHARDS)
    dlock_add_shards(${program} COMMAND ${program} LABELS ${arg_LABELS} SHARDS ${arg_SHARDS})
  else()
    # It cannot pass on a list, so the first of several labels is used.
    list(GET arg_LABELS 0 label)
    gtest_discover_tests(${program} PROPERTIES LABELS ${label} TIMEOUT ${arg_TIMEOUT} COST ${arg_TIMEOUT}
      DISCOVERY_TIMEOUT 60)
  endif()
endfunction()

# dlock_add_shards(NAME COMMAND program [argument...] LABELS label... SHARDS n)
# The tests of one run of a GoogleTest program, divided among so many processes.
function(dlock_add_shards name)
  cmake_parse_arguments(arg "" "SHARDS" "COMMAND;LABELS" ${ARGN})
  # Runs with many shards take long, so they start first.
  math(EXPR cost "600 + ${arg_SHARDS}")
  foreach(shard RANGE 1 ${arg_SHARDS})
    math(EXPR index "${shard} - 1")
    set(test ${name}.${shard}_of_${arg_SHARDS})
    add_test(NAME ${test} COMMAND ${arg_COMMAND})
    set_tests_properties(${test} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 600 COST ${cost}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# dlock_add_conformance(PROGRAM SERVICE ONE subject VARIANTS subject... [PLAIN subject...] SHARDS n)
# A conformance program that starts servers, which is too slow for each test: every subject, called <service>_<subject>,
# is divided into so many runs, and the tests of a run share their servers. ONE represents the backend if one is enough
# (label "one"). VARIANTS are its other strategies and other ways to reach it (label "variant_of_<service>"). What all
# kinds of locks have in common is tested with plain locks, and by separate runs with the other kinds (labels
# "kinds_of_<service>", "variant_kinds_of_<service>"). PLAIN are variants that have plain locks only.
function(dlock_add_conformance program service)
  cmake_parse_arguments(arg "" "ONE;SHARDS" "VARIANTS;PLAIN" ${ARGN})
  math(EXPR half "(${arg_SHARDS} + 1) / 2")
  foreach(subject IN LISTS arg_ONE arg_VARIANTS)
    if(subject STREQUAL arg_ONE)
      set(labels one)
      set(labels_of_kinds one kinds_of_${service})
      set(shards ${arg_SHARDS})
    else()
      set(labels variant_of_${service})
      set(labels_of_kinds variant_kinds_of_${service})
      set(shards ${half})
    endif()
    set(name "${service}_${subject}")
    set(kinds "*/${name}_to_write:*/${name}_one_permit:*/${name}_to_lead")
    dlock_add_shards(${program}.${subject} COMMAND ${program} "--gtest_filter=*/${name}*-${kinds}"
      LABELS integration conformance ${labels} SHARDS ${shards})
    dlock_add_shards(${program}.${subject}_kinds COMMAND ${program} "--gtest_filter=${kinds}"
      LABELS integration conformance ${labels_of_kinds} SHARDS ${shards})
  endforeach()
  foreach(subject IN LISTS arg_PLAIN)
    dlock_add_shards(${program}.${subject} COMMAND ${program} "--gtest_filter=*/${service}_${subject}*"
      LABELS integration conformance variant_of_${service} SHARDS ${half})
  endforeach()
endfunction()
