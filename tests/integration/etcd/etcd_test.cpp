#include "etcd/etcd_test.hpp"

#include "backends/etcd/locks/keys.hpp"

namespace dlock::test {

std::string Keys::prefix_of(const std::string& name, LockKind kind) {
  return etcd::lock_prefix({}, kind, name);
}

std::vector<std::string> Keys::queue(const std::string& name, LockKind kind) const {
  const std::string text =
      server_.ctl({"get", prefix_of(name, kind), "--prefix", "--keys-only", "--sort-by=CREATE", "--order=ASCEND"});
  std::vector<std::string> found;
  for (std::size_t from = 0; from < text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    if (end > from) found.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return found;
}

std::size_t Keys::residue(const std::string& name, LockKind kind) const {
  return server_.keys(prefix_of(name, kind)).size();
}

void Keys::await_residue(const std::string& name, std::size_t count, LockKind kind) const {
  await("not so many are at " + name, [&] { return residue(name, kind) == count; });
}

std::string Keys::lease_of(const std::string& key) {
  const std::string own = key.substr(key.rfind('/') + 1);
  return own.substr(0, own.find('.'));
}

}  // namespace dlock::test
