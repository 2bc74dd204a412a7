# Run by CPack on the folders of which it makes packages: compresses what Debian wants compressed, strips what
# `cmake --install --strip` leaves, and lets the examples name the command where the package has it.
cmake_minimum_required(VERSION 3.25)

file(GLOB_RECURSE to_compress "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/*.1"
  "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/changelog")
foreach(file IN LISTS to_compress)
  execute_process(COMMAND gzip --best --no-name --force "${file}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()

file(GLOB_RECURSE examples "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/dlock/examples/*")
foreach(file IN LISTS examples)
  execute_process(COMMAND sed --in-place s:/usr/local/bin/dlock:/usr/bin/dlock: "${file}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()

file(GLOB_RECURSE static "${CPACK_TEMPORARY_DIRECTORY}/*/usr/lib/*.a")
file(GLOB_RECURSE others "${CPACK_TEMPORARY_DIRECTORY}/*/usr/lib/*.so*" "${CPACK_TEMPORARY_DIRECTORY}/*/usr/bin/*")
foreach(file IN LISTS static others)
  if(IS_SYMLINK "${file}")
    continue()
  endif()
  set(how --strip-unneeded)
  if(file IN_LIST static)
    set(how --strip-debug --enable-deterministic-archives)
  endif()
  execute_process(COMMAND strip ${how} --remove-section=.comment --remove-section=.note "${file}"
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
