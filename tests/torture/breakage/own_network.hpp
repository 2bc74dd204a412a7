// A network that is this program's alone, in which it may break what it likes: a loopback interface and nothing else.
//
//   int main() {
//     std::string why_not;
//     if (!enter_own_network(why_not)) std::cerr << "without a network of its own: " << why_not << '\n';
//
// What the program starts afterwards is in it as well.
#pragma once

#include <string>

namespace dlock::torture {

// Before the program has threads: those it has would stay where they are. False, with the reason, where this machine
// does not permit it; nothing has changed then.
[[nodiscard]] bool enter_own_network(std::string& why_not);

}  // namespace dlock::torture
