#include "bench/report/page/groups.hpp"

#include <algorithm>
#include <utility>

#include "bench/report/selection.hpp"
#include "bench/report/text_table.hpp"

namespace dlock::bench {

namespace {

constexpr std::size_t most_of_a_name = 32;

}  // namespace

std::vector<Group> groups_of(const Report& report) {
  std::vector<Group> groups;
  for (const std::string& label : labels_of(report)) {
    const ServiceInfo* service = service_of(report, label);
    const std::string backend = service == nullptr ? "others" : service->backend;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& each) { return each.backend == backend; });
    if (group == groups.end()) group = groups.insert(groups.end(), {std::to_string(groups.size()), backend, {}});
    const std::string start = backend + " ";
    group->members.push_back(
        {.label = label,
         .name = shortened(label.starts_with(start) ? label.substr(start.size()) : label, most_of_a_name),
         .series = group->members.size(),
         .colour = group->members.size(),
         .baseline = backend == "memory"});
  }
  return groups;
}

Group together(const std::vector<Group>& groups) {
  Group all{.id = "all", .backend = "all services", .members = {}};
  for (std::size_t colour = 0; colour < groups.size(); ++colour) {
    for (Member member : groups[colour].members) {
      member.name = shortened(member.label, most_of_a_name);
      member.colour = colour;
      all.members.push_back(std::move(member));
    }
  }
  return all;
}

}  // namespace dlock::bench
