# Writes the version and the revision of the sources into a C++ source, unless they are unchanged.
#   cmake -DSOURCE_DIR=... -DVERSION=... -DOUTPUT=... -P WriteRevision.cmake
cmake_minimum_required(VERSION 3.25)

set(revision "")
if(EXISTS "${SOURCE_DIR}/.git")  # otherwise it could be the revision of an enclosing project
  execute_process(COMMAND git --no-optional-locks describe --always --tags --dirty --abbrev=12
    WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
elseif(EXISTS "${SOURCE_DIR}/REVISION")  # of a source archive; see scripts/package
  file(STRINGS "${SOURCE_DIR}/REVISION" revision LIMIT_COUNT 1)
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/revision.cpp.in" "${OUTPUT}" @ONLY)
