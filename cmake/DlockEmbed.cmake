# Texts embedded in a program.

# dlock_embed(TARGET NAMESPACE FUNCTION file...)
# Compiles into the target, in that C++ namespace, std::string_view FUNCTION(std::string_view name): the text of the
# file with this name, without its extension, and for any other name an empty text. Declare it where it is used.
function(dlock_embed target namespace function)
  set(texts "")
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    cmake_path(GET file STEM name)
    file(READ "${file}" text)
    string(APPEND texts "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp")
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT [[
#include <string_view>
#include <utility>

namespace @namespace@ {

namespace {
constexpr std::pair<std::string_view, std::string_view> texts[] = {
@texts@};
}  // namespace

std::string_view @function@(std::string_view name) {
  for (const auto& [each, text] : texts) {
    if (each == name) return text;
  }
  return {};
}

}  // namespace @namespace@
]])
  target_sources(${target} PRIVATE "${source}")
endfunction()
