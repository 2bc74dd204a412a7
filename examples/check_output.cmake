# cmake -D PROGRAM=... [-D ARGUMENT=...] -D EXPECTED=file -P check_output.cmake
# Runs a program and compares its output with a file, line by line in any order; its exit status must be 0. <n> in the
# file stands for a number.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND "${PROGRAM}" ${ARGUMENT} OUTPUT_VARIABLE output RESULT_VARIABLE status TIMEOUT 60)
file(STRINGS "${EXPECTED}" expected)
string(STRIP "${output}" output)
if(expected MATCHES "<n>")
  string(REGEX REPLACE "([ ,])[0-9]+(\\.[0-9]+)?" "\\1<n>" output "${output}")
endif()
string(REPLACE "\n" ";" lines "${output}")
list(SORT lines)
list(SORT expected)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "exit status ${status}; output:\n${output}")
elseif(NOT lines STREQUAL expected)
  message(FATAL_ERROR "expected the lines\n${expected}\nbut got\n${lines}")
endif()
