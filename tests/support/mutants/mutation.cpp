#include "tests/support/mutants/mutation.hpp"

#include <utility>

namespace dlock::mutants {

namespace {

constexpr std::pair<Mutation, std::string_view> names[] = {
    {Mutation::none, "none"},
    {Mutation::blind_release, "blind_release"},
    {Mutation::renewal_revives, "renewal_revives"},
    {Mutation::renewal_lies, "renewal_lies"},
    {Mutation::token_repeats, "token_repeats"},
    {Mutation::token_of_wall_clock, "token_of_wall_clock"},
    {Mutation::late_grant, "late_grant"},
    {Mutation::late_renewal, "late_renewal"},
    {Mutation::late_loss, "late_loss"},
    {Mutation::no_drift_margin, "no_drift_margin"},
    {Mutation::residue_on_give_up, "residue_on_give_up"},
    {Mutation::lost_wake_up, "lost_wake_up"},
    {Mutation::early_expiry, "early_expiry"},
    {Mutation::immortal_lease, "immortal_lease"},
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
    {Mutation::writer_out_of_line, "writer_out_of_line"},
    {Mutation::stale_count, "stale_count"},
    {Mutation::permit_of_another, "permit_of_another"},
    {Mutation::two_step_election, "two_step_election"},
    {Mutation::some_kept, "some_kept"},
    {Mutation::late_signal, "late_signal"},
    {Mutation::late_deadline, "late_deadline"},
    {Mutation::deaf_to_cancel, "deaf_to_cancel"},
    {Mutation::blind_resource, "blind_resource"},
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

}  // namespace dlock::mutants
