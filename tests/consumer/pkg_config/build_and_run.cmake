# Builds the Makefile project against an installed dlock and runs its program.
cmake_minimum_required(VERSION 3.25)

file(MAKE_DIRECTORY "${BUILD_DIR}")
set(ENV{PKG_CONFIG_PATH} "${LIBRARY_DIR}/pkgconfig")
set(program_dir "${CMAKE_CURRENT_LIST_DIR}/../program")

execute_process(COMMAND "${MAKE}" --always-make -f "${CMAKE_CURRENT_LIST_DIR}/Makefile" "CXX=${CXX}"
    "PKG_CONFIG=${PKG_CONFIG}"
    "SOURCES=${program_dir}/main.cpp ${program_dir}/table_backend.cpp"
  WORKING_DIRECTORY "${BUILD_DIR}" COMMAND_ERROR_IS_FATAL ANY)

# A program linked to a shared library in a place that the loader does not know must be told where it is.
if(KIND STREQUAL "shared")
  set(ENV{LD_LIBRARY_PATH} "${LIBRARY_DIR}")
endif()
execute_process(COMMAND "${BUILD_DIR}/consumer" COMMAND_ERROR_IS_FATAL ANY)
