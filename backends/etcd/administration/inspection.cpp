#include "backends/etcd/administration/inspection.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "backends/etcd/locks/keys.hpp"
#include "backends/etcd/wire/messages.hpp"
#include "util/names.hpp"

namespace dlock::etcd {

namespace {

constexpr std::int64_t keys_at_once = 2000;
constexpr std::size_t removed_at_once = 100;  // etcd accepts 128

using Keys = std::vector<KeyValue>;

void query(Client& client, const Read& what, TimePoint deadline, std::function<void(Result<StepAnswer>)> done) {
  client.call(Transaction().read(what), deadline, [done = std::move(done)](Result<TransactionAnswer> answer) {
    if (!answer.ok()) return done(unanswered_question(answer.failure()));
    done(std::move(answer.value().steps.front()));
  });
}

// The keys of a lock, as far as they are its holders.
struct Holders {
  struct Holder {
    const KeyValue* key;
    Mode mode;
  };
  std::vector<Holder> holders;
  std::size_t waiters = 0;
  std::uint32_t permits = 0;  // of a semaphore
};

// keys: the oldest first.
Holders holders_in(const Options& options, LockKind kind, const Keys& keys) {
  Holders found;
  const std::size_t prefix = kind_prefix(options, kind).size();
  std::size_t members = 0;
  bool readers = true;  // so far
  for (const KeyValue& each : keys) {
    const auto parts = parse_key(options, kind, std::string_view(each.key).substr(prefix));
    if (!parts) continue;
    if (members++ == 0) found.permits = parts->permits;
    readers = readers && parts->mode == Mode::shared;
    if (readers || found.holders.size() < found.permits) found.holders.push_back({&each, parts->mode});
  }
  found.waiters = members - found.holders.size();
  return found;
}

LockInfo info_of(const Options& options, LockKind kind, const std::string& name, const Keys& keys) {
  const auto [holders, waiters, permits] = holders_in(options, kind, keys);
  LockInfo info{.name = name, .held = !holders.empty(), .kind = kind};
  for (const auto& [key, mode] : holders) {
    const FencingToken token(static_cast<std::uint64_t>(key->created));
    if (kind == LockKind::election) {
      set_holder(info, key->value);
    } else if (key == holders.front().key) {
      info.holder = key->value;
    }
    info.token = std::max(info.token, token);
    if (kind == LockKind::read_write || kind == LockKind::semaphore) {
      info.holders.push_back({.holder = key->value, .mode = mode, .token = token});
    }
  }
  if (kind == LockKind::semaphore) info.permits = permits;
  info.waiters = waiters;
  return info;
}

Read all_keys_of(const Options& options, LockKind kind, const std::string& name) {
  return {.range = beginning_with(lock_prefix(options, kind, name)), .order = Order::oldest_first};
}

// --- All locks -------------------------------------------------------------------------------------------------------

struct Listing {
  Client& client;
  LockKind kind;
  TimePoint deadline;
  KeyRange rest;
  std::map<std::string, Keys> locks;
  Backend::Handler<std::vector<LockInfo>> done;
};

void finish(Listing& listing) {
  std::vector<LockInfo> all;
  for (auto& [name, keys] : listing.locks) {
    std::ranges::sort(keys, {}, &KeyValue::created);
    all.push_back(info_of(listing.client.options(), listing.kind, name, keys));
  }
  listing.done(std::move(all));
}

void list_rest(const std::shared_ptr<Listing>& listing) {
  query(listing->client, {.range = listing->rest, .limit = keys_at_once}, listing->deadline,
        [listing](Result<StepAnswer> answer) {
          if (!answer.ok()) return listing->done(answer.failure());
          StepAnswer& step = answer.value();
          const Options& options = listing->client.options();
          const std::size_t prefix = kind_prefix(options, listing->kind).size();
          for (KeyValue& each : step.keys) {
            listing->rest.key = each.key + std::string(1, '\0');
            const auto parts = parse_key(options, listing->kind, std::string_view(each.key).substr(prefix));
            if (!parts || util::problem_with_name(parts->name)) continue;
            listing->locks[parts->name].push_back(std::move(each));
          }
          step.more && !step.keys.empty() ? list_rest(listing) : finish(*listing);
        });
}

// --- Breaking --------------------------------------------------------------------------------------------------------

// Removes these keys, unless they were created again meanwhile.
void remove(Client& client, TimePoint deadline, Keys keys, std::size_t at_once, bool removed,
            Backend::Handler<bool> done) {
  if (keys.empty()) return done(removed);
  Transaction transaction;
  const std::size_t count = std::min(keys.size(), at_once);
  for (std::size_t i = 0; i < count; ++i) {
    transaction.if_created({keys[i].key}, keys[i].created).remove({keys[i].key});
  }
  client.call(transaction, deadline,
              [&client, deadline, keys = std::move(keys), at_once, removed, count,
               done = std::move(done)](const Result<TransactionAnswer>& answer) {
                if (!answer.ok()) return done(answer.failure());
                const bool held = answer.value().held;
                // If one of several is gone, the transaction has removed none of the others.
                if (!held && count > 1) return remove(client, deadline, keys, 1, removed, done);
                remove(client, deadline, Keys(keys.begin() + static_cast<std::ptrdiff_t>(count), keys.end()), at_once,
                       removed || held, done);
              });
}

}  // namespace

void inspect(Client& client, LockKind kind, const std::string& name, Backend::Handler<LockInfo> done) {
  query(client, all_keys_of(client.options(), kind, name), client.answer_by(),
        [&client, kind, name, done = std::move(done)](const Result<StepAnswer>& answer) {
          if (!answer.ok()) return done(answer.failure());
          done(info_of(client.options(), kind, name, answer.value().keys));
        });
}

void list(Client& client, LockKind kind, Backend::Handler<std::vector<LockInfo>> done) {
  list_rest(std::make_shared<Listing>(Listing{
      client, kind, client.answer_by(), beginning_with(kind_prefix(client.options(), kind)), {}, std::move(done)}));
}

void break_lock(Client& client, LockKind kind, const std::string& name, Backend::Handler<bool> done) {
  const TimePoint deadline = client.answer_by();
  query(client, all_keys_of(client.options(), kind, name), deadline,
        [&client, kind, deadline, done = std::move(done)](const Result<StepAnswer>& answer) {
          if (!answer.ok()) return done(answer.failure());
          Keys keys;
          for (const auto& [key, mode] : holders_in(client.options(), kind, answer.value().keys).holders) {
            keys.push_back(*key);
          }
          remove(client, deadline, std::move(keys), removed_at_once, false, done);
        });
}

}  // namespace dlock::etcd
