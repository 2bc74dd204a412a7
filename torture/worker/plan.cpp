#include "torture/worker/plan.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "torture/history/event.hpp"

namespace dlock::torture {

using Json = nlohmann::ordered_json;

void save(const Plan& plan, const std::filesystem::path& file) {
  const Json json{{"process", plan.process},
                  {"seed", plan.seed},
                  {"history", plan.history.string()},
                  {"board", plan.board.string()},
                  {"resource", plan.resource.string()},
                  {"seats", plan.seats},
                  {"first_seat", plan.first_seat},
                  {"threads", plan.threads},
                  {"locks", plan.locks},
                  {"kind", name_of(plan.lock_kind)},
                  {"permits", plan.permits},
                  {"lease_ns", plan.lease.count()},
                  {"fixed_leases", plan.fixed_leases}};
  std::ofstream out(file);
  out << json.dump(2) << '\n';
  if (!out.flush()) throw std::system_error(errno, std::generic_category(), file.string());
}

Plan load_plan(const std::filesystem::path& file) {
  std::ifstream in(file);
  try {
    const Json json = Json::parse(in);
    Plan plan;
    plan.process = json.at("process").get<int>();
    plan.seed = json.at("seed").get<std::uint64_t>();
    plan.history = json.at("history").get<std::string>();
    plan.board = json.at("board").get<std::string>();
    plan.resource = json.at("resource").get<std::string>();
    plan.seats = json.at("seats").get<std::size_t>();
    plan.first_seat = json.at("first_seat").get<std::size_t>();
    plan.threads = json.at("threads").get<std::size_t>();
    plan.locks = json.at("locks").get<std::vector<std::string>>();
    plan.lock_kind = lock_kind_named(json.at("kind").get<std::string>()).value();
    plan.permits = json.at("permits").get<std::uint32_t>();
    plan.lease = std::chrono::nanoseconds(json.at("lease_ns").get<std::int64_t>());
    plan.fixed_leases = json.at("fixed_leases").get<bool>();
    if (plan.locks.empty() || plan.first_seat + plan.threads > plan.seats)
      throw std::runtime_error("its values make no sense");
    return plan;
  } catch (const std::exception& e) {
    throw std::runtime_error("cannot follow the plan " + file.string() + ": " + e.what());
  }
}

}  // namespace dlock::torture
