#include "statement_steps.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <sstream>

namespace dlock::sql {

namespace {

using Kind = RowRequest::Kind;
using Status = RowAnswer::Status;

constexpr std::string_view rows_of_one_holder = R"(
  1 acquire x a => yes token
  1 acquire x a held => yes same
  2 acquire x b ; acquire y c ; acquire z d => no $A2lease ; yes token ; yes token
  2 acquire v e ; acquire v f ; acquire w g ; acquire w h held => yes token ; no $E1lease ; no $H1lease ; yes token
  2 renew x b ; renew y c ; renew w h => no ; yes ; yes
  2 release x b => no
  2 release x b ; release y c gave_up => no ; yes
  2 release y c gave_up => no
  1 renew x a => yes
  1 release x a => yes
  1 renew x a => no
  2 acquire x b => yes token
  2 acquire x c quiet ; release x b quiet => yes token ; yes
  2 release x c quiet => yes
  1 acquire x a quiet => yes token
)";

constexpr std::string_view takeover = R"(
  1 acquire x a => yes token
  2 acquire x b seen=a:7 => no a 1 lease
  1 renew x a => yes
  2 acquire x b seen=a:1 => no a 2 lease
  2 acquire x b seen=a:2 => yes token
  1 renew x a => no
  1 release x a => no
)";

constexpr std::string_view semaphore = R"(
  1 acquire x a 1/2 ; acquire x b 1/2 ; acquire x c 1/2 ; acquire y d 1/1 => yes token ; yes token ; no lease ; yes token
  1 acquire x b 1/2 held => yes same
  2 release x a ; renew x b ; acquire x c 1/2 ; renew y e => yes ; yes ; yes token ; no
  1 release x a ; renew x a ; release z a => no ; no ; no
  1 acquire x d 1/3 ; acquire x e 1/2 => no permits 2 lease ; no lease
  1 release x b ; release x c => yes ; yes
  1 acquire x d 1/3 ; acquire x e 1/2 => yes token ; no permits 3 lease
  1 acquire v a 1/1 lease=100 => yes token
  pass 150
  1 renew v a ; acquire v b 1/1 => no ; yes token
  1 release v a => no
  1 acquire v b 1/1 held => yes same
)";

constexpr std::string_view read_write = R"(
  1 acquire x a 1/9 => yes token
  1 acquire x w 9/9 mark=60000 => no lease
  1 acquire x b 1/9 => no lease
  2 acquire x v 9/9 mark=60000 => no lease
  2 release x w => no
  2 acquire x c 1/9 => yes token
  2 acquire x v 9/9 mark=60000 => no lease
  2 release x a ; release x c => yes ; yes
  2 acquire x b 1/9 => no lease
  2 acquire x v 9/9 mark=60000 => yes token
  1 acquire x a 1/9 => no lease
  2 release x v => yes
  1 acquire x a 1/9 => yes token
  1 acquire x w 9/9 mark=100 => no lease
  pass 150
  1 acquire x b 1/9 => yes token
  1 acquire y a 1/9 lease=100 ; acquire y b 1/9 lease=100 => yes token ; yes token
  pass 150
  1 acquire y w 9/9 => yes token
  1 acquire y b 1/9 held => no lease
  1 release y w => yes
  1 acquire y b 1/9 held => yes token
)";

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

bool is_token(const std::string& text) {
  constexpr std::size_t least_digits = 11;
  return text.size() >= least_digits && text.find_first_not_of("0123456789") == std::string::npos;
}

std::string text_of_ms(std::int64_t ms) {
  if (ms > 40000 && ms <= 60000) return "lease";
  return ms > 0 && ms <= 500 ? "soon" : std::to_string(ms);
}

// --- Playing ---------------------------------------------------------------------------------------------------------

OwnerId owner_of(char letter) {
  return {0, static_cast<std::uint64_t>(letter)};
}

class Player {
 public:
  Player(const Scenario& scenario, StepSessions& sessions, const StepService& service)
      : sessions_(sessions),
        service_(service),
        store_(service.store_of(kind_of(scenario.store), scenario.store.starts_with("optimistic"))) {}

  void play_line(const std::string& line) {
    std::istringstream words(line);
    std::string first;
    std::string word;
    std::string rest;
    if (!(words >> first)) return;
    if (first == "unlocks") return sessions_.unlock_row();
    std::getline(words >> word >> std::ws, rest);
    if (first == "pass") return sessions_.pass(std::chrono::milliseconds(std::stoi(word)));
    if (first == "locks") return sessions_.lock_row(word, rest);
    const int session = std::stoi(first);
    if (word == "end") return sessions_.end(session);
    if (word == "hears") {
      EXPECT_EQ(replaced(sessions_.notification(session), "\t", " "), rest);
      return;
    }
    if (word == "<=") return expect(session, rest);
    const std::string all = word + " " + rest;
    if (all.ends_with(" ...")) {
      sessions_.send(session, commands_in(all.substr(0, all.size() - 4)));
      return sessions_.await_wait(session);
    }
    const std::size_t arrow = all.find("=>");
    const std::string expected = arrow + 3 < all.size() ? all.substr(arrow + 3) : "";
    if (kinds.contains(word)) return ask(session, all.substr(0, arrow), expected);
    sessions_.send(session, commands_in(all.substr(0, arrow)));
    expect(session, expected);
  }

 private:
  static inline const std::map<std::string, Kind> kinds{
      {"acquire", Kind::acquire}, {"renew", Kind::renew}, {"release", Kind::release}, {"mark", Kind::mark}};

  static LockKind kind_of(const std::string& store) {
    if (store.ends_with("_sem")) return LockKind::semaphore;
    if (store.ends_with("_rw")) return LockKind::read_write;
    return store.ends_with("_elect") ? LockKind::election : LockKind::lock;
  }

  // --- Requests ---

  void ask(int session, const std::string& text, const std::string& expected) {
    std::vector<RowRequest> requests;
    bool quiet = false;
    std::istringstream words(text);
    RowRequest request;
    for (std::string word; words >> word;) {
      if (word == "quiet") {
        quiet = true;
      } else if (word != ";") {
        std::string name;
        char owner = 0;
        words >> name;
        if (word != "mark") words >> owner;
        requests.push_back({.kind = kinds.at(word),
                            .name = name,
                            .owner = owner_of(owner),
                            .deadline = {},
                            .holder = "h",
                            .lease = std::chrono::seconds(60)});
        while (words >> std::ws && words.peek() != ';' && words >> word) {
          if (word == "quiet") quiet = true;
          read_option(word, requests.back());
        }
        words.clear();
      }
    }
    std::vector<RowAnswer> answers(requests.size(), {.status = Status::no_row});
    for (bool make_row = false;; make_row = true) {
      RowStore::Requests some;
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (answers[i].status != Status::no_row) continue;
        requests[i].make_row = make_row;
        some.push_back(&requests[i]);
      }
      if (some.empty()) break;
      const auto parts = parts_of(some);
      std::vector<Command> commands;
      std::vector<std::size_t> ends;
      for (const auto& part : parts) {
        for (Command& command : store_->commands_for(part, quiet)) commands.push_back(std::move(command));
        ends.push_back(commands.size());
      }
      sessions_.send(session, std::move(commands));
      const auto answer = sessions_.answer(session);
      if (answer.outcome.problem != Problem::none) {
        EXPECT_EQ(answer.outcome.server_code, expected) << answer.outcome.failure.detail;
        return;
      }
      for (std::size_t part = 0, begin = 0; part < parts.size(); begin = ends[part++]) {
        const auto results = std::span(answer.results).subspan(begin, ends[part] - begin);
        const auto given = store_->answers_to(parts[part], results, {});
        for (std::size_t i = 0; i < given.size(); ++i) {
          answers[static_cast<std::size_t>(parts[part][i] - requests.data())] = given[i];
        }
      }
    }
    // In the order in which the rows are changed, so that tokens can be compared.
    std::string out;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      out += (out.empty() ? "" : " ; ") + text_of(requests[i], answers[i]);
    }
    EXPECT_EQ(out, expected);
  }

  // The requests of one call of commands_for(), as RowBatch orders them.
  [[nodiscard]] std::vector<RowStore::Requests> parts_of(const RowStore::Requests& requests) const {
    if (store_->sharing()) return {requests};
    std::vector<RowStore::Requests> parts;
    for (const Kind kind : {Kind::release, Kind::renew, Kind::acquire, Kind::mark}) {
      RowStore::Requests part;
      std::ranges::copy_if(requests, std::back_inserter(part), [kind](const auto* each) { return each->kind == kind; });
      if (!part.empty()) parts.push_back(std::move(part));
    }
    return parts;
  }

  void read_option(const std::string& word, RowRequest& request) {
    const auto value = [&] { return word.substr(word.find('=') + 1); };
    const auto ms = [&] { return std::chrono::milliseconds(std::stoi(value())); };
    if (word == "held") request.may_be_held = true;
    if (word == "gave_up") request.gave_up = true;
    if (word.starts_with("lease=")) request.lease = ms();
    if (word.starts_with("mark=")) request.mark = ms();
    if (word.starts_with("place=")) request.place = static_cast<std::uint64_t>(sessions_.id(std::stoi(value())));
    if (word.starts_with("seen=")) {
      request.stood_still = {.owner = owner_of(value()[0]).to_string(), .version = std::stoi(value().substr(2))};
    }
    if (const auto slash = word.find('/'); slash != std::string::npos) {
      request.weight = std::stoi(word);
      request.permits = std::stoi(word.substr(slash + 1));
    }
  }

  std::string text_of(const RowRequest& request, const RowAnswer& answer) {
    if (answer.status == Status::failed) return "failed";
    std::string text = answer.status == Status::yes ? "yes" : answer.status == Status::no ? "no" : "again";
    if (request.kind != Kind::acquire) return text;
    if (answer.status == Status::yes) {
      const std::uint64_t token = answer.token.value();
      std::uint64_t& last = tokens_[request.name];
      std::uint64_t& own = tokens_[request.name + ":" + request.owner.to_string()];
      const bool same = own == token;
      if (!same && token <= last) return "yes, with a token that is not greater";
      last = std::max(last, token);
      own = token;
      return text + (same ? " same" : " token");
    }
    if (answer.other_permits) text += " permits " + std::to_string(*answer.other_permits);
    if (!answer.seen.owner.empty()) {
      text += std::string(" ") + static_cast<char>(std::stoi(answer.seen.owner.substr(30), nullptr, 16)) + " " +
              std::to_string(answer.seen.version);
    }
    if (answer.lease) {
      text += " " + text_of_ms(std::chrono::duration_cast<std::chrono::milliseconds>(*answer.lease).count());
    }
    return text;
  }

  // --- Statements ---

  // "begin ; row_lock.try_lock x"
  [[nodiscard]] std::vector<Command> commands_in(const std::string& text) const {
    std::vector<Command> commands;
    std::istringstream words(text);
    bool begins = true;
    for (std::string word; words >> word;) {
      if (word == ";") {
        begins = true;
      } else if (!std::exchange(begins, false)) {
        commands.back().params.emplace_back(word == "''" ? "" : word);
      } else if (word == "listen") {
        words >> word;
        commands.push_back({.text = "LISTEN \"" + word + "\""});
      } else {
        commands.push_back({.statement = &service_.statements.at(word)});
      }
    }
    return commands;
  }

  void expect(int session, std::string expected) {
    const auto answer = sessions_.answer(session);
    if (answer.outcome.problem != Problem::none) {
      EXPECT_EQ(answer.outcome.server_code, expected) << answer.outcome.failure.detail;
      return;
    }
    std::string text;
    for (const Rows& rows : answer.results) text += (&rows == answer.results.data() ? "" : "/ ") + text_of(rows);
    text.erase(text.find_last_not_of(' ') + 1);
    if (service_.only_cells) expected.erase(expected.find_last_not_of(" -") + 1);
    EXPECT_EQ(text, expected);
  }

  std::string text_of(const Rows& rows) {
    std::string text;
    for (const Rows::Row& row : rows.rows) {
      std::string cells;
      for (std::size_t column = 0; column < row.size(); ++column) {
        cells += (column > 0 ? " " : "") + cell_text(row[column], column > 0 && column + 1 == row.size());
      }
      if (service_.only_cells) cells.erase(cells.find_last_not_of(" -") + 1);
      if (!cells.empty()) text += (text.empty() ? "" : ", ") + cells;
    }
    if (!text.empty()) return text + ' ';
    if (service_.only_cells) return "";
    if (is_token(std::to_string(rows.inserted))) return "token ";
    return rows.affected > 0 ? std::to_string(rows.affected) + " " : "";
  }

  std::string cell_text(const std::optional<std::string>& cell, bool last) {
    if (!cell) return "-";
    if (is_token(*cell)) return "token";
    if (cell->starts_with("dlock#")) return "name";
    for (int session = 1; (last || cell->size() > 1) && session <= 5; ++session) {
      if (*cell == std::to_string(sessions_.id(session))) return "s" + std::to_string(session);
    }
    if (cell->size() == 5 && cell->find_first_not_of("0123456789") == std::string::npos)
      return text_of_ms(std::stoi(*cell));
    return *cell;
  }

  StepSessions& sessions_;
  const StepService& service_;
  const std::unique_ptr<RowStore> store_;
  std::map<std::string, std::uint64_t> tokens_;  // by name, and by name and owner
};

}  // namespace

Scenario scenario_of(bool optimistic, const std::string& name, std::string_view steps) {
  std::string text(steps);
  for (const char* const seen : {"$A1", "$A2", "$E1", "$H1"}) {
    const std::string shown = {static_cast<char>(seen[1] + 'a' - 'A'), ' ', seen[2], ' '};
    text = replaced(text, seen, optimistic ? shown : "");
  }
  text = replaced(text, "$T", optimistic ? "optimistic" : "lease");
  text = replaced(text, "$LEFT", optimistic ? "-" : "lease");
  return {(optimistic ? "Optimistic" : "Table") + name, text, optimistic ? "optimistic" : "lease"};
}

std::vector<Scenario> common_scenarios() {
  return {scenario_of(false, "OneHolder", rows_of_one_holder),
          scenario_of(true, "OneHolder", rows_of_one_holder),
          {"OptimisticTakeover", std::string(takeover), "optimistic"},
          {"Election", scenario_of(false, "", rows_of_one_holder).steps, "lease_elect"},
          {"Semaphore", std::string(semaphore), "lease_sem"},
          {"ReadWriteLock", std::string(read_write), "lease_rw"}};
}

void play(const Scenario& scenario, StepSessions& sessions, const StepService& service) {
  Player player(scenario, sessions, service);
  std::istringstream steps(scenario.steps);
  for (std::string line; std::getline(steps, line) && !testing::Test::HasFailure();) {
    SCOPED_TRACE(line);
    player.play_line(line);
  }
}

}  // namespace dlock::sql
