#include "cli/text.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace dlock::cli {

namespace {

// The number of characters to add, remove, replace or swap with a neighbour, to change one into the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string for_people(std::chrono::nanoseconds duration) {
  using namespace std::chrono_literals;
  if (duration < 1s) return fmt::format("{} ms", duration / 1ms);
  if (duration < 1min) return fmt::format("{:.1f} s", std::chrono::duration<double>(duration).count());
  if (duration < 1h) return fmt::format("{} min {} s", duration / 1min, duration % 1min / 1s);
  return fmt::format("{} h {} min", duration / 1h, duration % 1h / 1min);
}

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : " and ";
    text += '"' + names[i] + '"';
  }
  return text;
}

std::string most_like(std::string_view word, const std::vector<std::string>& words) {
  constexpr std::size_t longest = 64;
  const std::size_t tolerance = word.size() < 5 ? 1 : 2;
  if (word.size() > longest || words.empty()) return {};
  const auto far = [&](const std::string& each) { return distance(word, each); };
  const auto nearest = std::ranges::min_element(words, {}, far);
  return far(*nearest) <= tolerance ? *nearest : std::string();
}

std::string_view kind_word(LockKind kind) noexcept {
  return kind == LockKind::read_write ? "read-write" : to_string(kind);
}

std::string_view explain(std::string_view guarantee, std::string_view word) noexcept {
  static constexpr std::array<std::array<std::string_view, 3>, 9> known{{
      {"scope", "process", "only threads of one process exclude each other"},
      {"scope", "machine", "processes of this machine exclude each other"},
      {"scope", "network", "all clients of the service exclude each other"},
      {"lease", "per_lock", "each lock has a lease that dlock renews; a dead holder's ends with it"},
      {"lease", "session", "locks live as long as the connection's session; a dead holder's end with it"},
      {"lease", "process", "locks live as long as the holder's process; a dead holder's is free at once"},
      {"fencing", "none", "tokens may start again when the service loses its data"},
      {"fencing", "wall_clock", "tokens grow even across lost data, unless the wall clock is set back then"},
      {"fencing", "service", "tokens are ordered by the service and always grow"},
  }};
  for (const auto& [about, named, text] : known) {
    if (about == guarantee && named == word) return text;
  }
  return {};
}

std::string_view describe_scheme(std::string_view scheme) noexcept {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 15> known{{
      {"file", "this machine: kernel locks on files, no server (the default)"},
      {"memory", "this process only: for tests of programs that use the library"},
      {"etcd", "an etcd cluster"},
      {"etcds", "an etcd cluster over TLS"},
      {"mariadb", "MariaDB (MySQL is untested)"},
      {"mysql", "MariaDB (MySQL is untested)"},
      {"postgres", "PostgreSQL"},
      {"postgresql", "PostgreSQL"},
      {"redis", "Redis"},
      {"redis-cluster", "a Redis Cluster"},
      {"redis-sentinel", "Redis, wherever its sentinels say that the master is"},
      {"rediss", "Redis over TLS"},
      {"rediss-cluster", "a Redis Cluster over TLS"},
      {"rediss-sentinel", "Redis over TLS, and its sentinels"},
      {"zookeeper", "an Apache ZooKeeper ensemble"},
  }};
  for (const auto& [name, description] : known) {
    if (name == scheme) return description;
  }
  return "added to this program";
}

}  // namespace dlock::cli
