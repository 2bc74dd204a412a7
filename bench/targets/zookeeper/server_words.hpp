// What a server answers to four-letter words, each line of which has a name and a value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlock::bench {

// Of mntr: "name<tab>value". nullopt: there is none of that name, or it is no number.
[[nodiscard]] std::optional<double> mntr_number(std::string_view answer, std::string_view name);
// Of mntr; "3.8.0". Empty: it does not say.
[[nodiscard]] std::string mntr_version(std::string_view answer);
// Of conf: "maxClientCnxns=60". nullopt as above.
[[nodiscard]] std::optional<double> conf_number(std::string_view answer, std::string_view name);

}  // namespace dlock::bench
