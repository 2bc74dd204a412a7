#include "mutants/mutation.hpp"

#include <utility>

namespace dlock::conformance {

namespace {

constexpr std::pair<Mutation, std::string_view> names[] = {
    {Mutation::none, "none"},
    {Mutation::blind_release, "blind_release"},
    {Mutation::renewal_revives, "renewal_revives"},
    {Mutation::renewal_lies, "renewal_lies"},
    {Mutation::token_repeats, "token_repeats"},
    {Mutation::late_grant, "late_grant"},
    {Mutation::late_renewal, "late_renewal"},
    {Mutation::late_loss, "late_loss"},
    {Mutation::residue_on_give_up, "residue_on_give_up"},
    {Mutation::lost_wake_up, "lost_wake_up"},
    {Mutation::early_expiry, "early_expiry"},
    {Mutation::two_holders, "two_holders"},
    {Mutation::folded_case, "folded_case"},
    {Mutation::decoded_name, "decoded_name"},
    {Mutation::busy_is_error, "busy_is_error"},
    {Mutation::failure_is_busy, "failure_is_busy"},
    {Mutation::last_comes_first, "last_comes_first"},
    {Mutation::release_lies, "release_lies"},
    {Mutation::release_waits_for_lease, "release_waits_for_lease"},
    {Mutation::blocks, "blocks"},
    {Mutation::forgotten_clean_up, "forgotten_clean_up"},
    {Mutation::shared_expiry, "shared_expiry"},
    {Mutation::one_reader_enters, "one_reader_enters"},
    {Mutation::reader_jumps_queue, "reader_jumps_queue"},
    {Mutation::stale_count, "stale_count"},
    {Mutation::permit_of_another, "permit_of_another"},
    {Mutation::some_kept, "some_kept"},
};

}  // namespace

std::string_view to_string(Mutation mutation) noexcept {
  for (const auto& [value, text] : names) {
    if (value == mutation) return text;
  }
  return "unknown";
}

std::optional<Mutation> parse_mutation(std::string_view text) noexcept {
  for (const auto& [value, name] : names) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace dlock::conformance
