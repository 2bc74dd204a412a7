#include "cli/held.hpp"

#include <algorithm>
#include <cstddef>

namespace dlock::cli {

std::vector<const Lease*> Held::each() const {
  if (const auto* lease = std::get_if<Lease>(&leases_)) return {lease};
  const auto& several = std::get<MultiLease>(leases_);
  std::vector<const Lease*> each;
  for (std::size_t i = 0; i < several.size(); ++i) each.push_back(&several[i]);
  return each;
}

std::vector<std::uint64_t> Held::tokens() const {
  std::vector<std::uint64_t> tokens;
  for (const Lease* lease : each()) tokens.push_back(lease->token().value());
  return tokens;
}

std::string Held::first_to_go() const {
  const auto end = [](const Lease* lease) { return lease->held() ? lease->valid_until() : TimePoint::min(); };
  const std::vector<const Lease*> leases = each();
  return (*std::ranges::min_element(leases, {}, end))->name();
}

}  // namespace dlock::cli
