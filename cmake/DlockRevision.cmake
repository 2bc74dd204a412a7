# The version and the revision of the sources, for programs that show them. Each build determines the revision, not only
# each configuration. It is in a separate library: after a commit, one small source is compiled, and only programs that
# show it are linked again.
set(dlock_revision_source "${PROJECT_BINARY_DIR}/revision/revision.cpp")
set(dlock_write_revision "${CMAKE_COMMAND}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DVERSION=${PROJECT_VERSION}"
  "-DOUTPUT=${dlock_revision_source}" -P "${CMAKE_CURRENT_LIST_DIR}/WriteRevision.cmake")

add_custom_target(dlock_look_up_revision COMMAND ${dlock_write_revision} BYPRODUCTS "${dlock_revision_source}"
  COMMENT "Looking up the revision" VERBATIM)
add_library(dlock_revision STATIC EXCLUDE_FROM_ALL "${dlock_revision_source}")
add_dependencies(dlock_revision dlock_look_up_revision)
dlock_target(dlock_revision)
target_include_directories(dlock_revision PUBLIC "${PROJECT_SOURCE_DIR}")
