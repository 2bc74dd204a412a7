# The multi-threaded C client of ZooKeeper. Debian's package has neither a pkg-config file nor one for CMake.
#   ZooKeeper::zookeeper_mt   the library, to be used with asynchronous and synchronous calls alike (THREADED)
find_path(ZooKeeper_INCLUDE_DIR zookeeper/zookeeper.h DOC "Directory that has zookeeper/zookeeper.h")
find_library(ZooKeeper_LIBRARY zookeeper_mt DOC "libzookeeper_mt")
mark_as_advanced(ZooKeeper_INCLUDE_DIR ZooKeeper_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZooKeeper REQUIRED_VARS ZooKeeper_LIBRARY ZooKeeper_INCLUDE_DIR)

if(ZooKeeper_FOUND AND NOT TARGET ZooKeeper::zookeeper_mt)
  add_library(ZooKeeper::zookeeper_mt UNKNOWN IMPORTED GLOBAL)
  # As of every imported target, its directory is a system directory to the compiler.
  set_target_properties(ZooKeeper::zookeeper_mt PROPERTIES
    IMPORTED_LOCATION "${ZooKeeper_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${ZooKeeper_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS THREADED)
endif()
