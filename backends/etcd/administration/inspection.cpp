#include "backends/etcd/administration/inspection.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "backends/etcd/locks/keys.hpp"
#include "backends/etcd/wire/messages.hpp"
#include "util/names.hpp"

namespace dlock::etcd {

namespace {

constexpr std::int64_t keys_at_once = 2000;
constexpr std::size_t removed_at_once = 100;  // of 128 that etcd takes

using Keys = std::vector<KeyValue>;

void question(Client& client, const Transaction& transaction, TimePoint deadline,
              std::function<void(Result<TransactionAnswer>)> done) {
  client.call(transaction, deadline, [done = std::move(done)](Result<TransactionAnswer> answer) {
    done(answer.ok() ? std::move(answer) : unanswered_question(answer.failure()));
  });
}

// Of the keys of a lock, the oldest first: who hold it.
struct Sight {
  struct Holder {
    const KeyValue* key;
    Mode mode;
  };
  std::vector<Holder> holders;
  std::size_t members = 0;
  std::uint32_t permits = 0;
};

Sight look_at(const Options& options, LockKind kind, const Keys& keys) {
  Sight sight;
  const std::size_t prefix = kind_prefix(options, kind).size();
  std::size_t capacity = 1;
  bool readers = false;
  for (const KeyValue& each : keys) {
    const auto parts = parse_key(options, kind, std::string_view(each.key).substr(prefix));
    if (!parts) continue;
    const bool first = sight.members++ == 0;
    const bool shared = parts->mode == Mode::shared;
    if (first) {
      readers = shared;
      capacity = parts->permits;
      sight.permits = parts->permits;
    }
    readers = readers && shared;
    if (readers || sight.holders.size() < capacity) sight.holders.push_back({&each, parts->mode});
  }
  return sight;
}

LockInfo info_of(const Options& options, LockKind kind, const std::string& name, const Keys& keys) {
  const Sight sight = look_at(options, kind, keys);
  LockInfo info{.name = name, .held = !sight.holders.empty(), .kind = kind};
  for (const Sight::Holder& each : sight.holders) {
    const FencingToken token(static_cast<std::uint64_t>(each.key->created));
    if (kind == LockKind::election) {
      set_holder(info, each.key->value);
    } else if (&each == &sight.holders.front()) {
      info.holder = each.key->value;
    }
    info.token = std::max(info.token, token);
    if (kind == LockKind::read_write || kind == LockKind::semaphore) {
      info.holders.push_back({.holder = each.key->value, .mode = each.mode, .token = token});
    }
  }
  if (kind == LockKind::semaphore) info.permits = sight.permits;
  info.waiters = sight.members - sight.holders.size();
  return info;
}

Read all_of(const Options& options, LockKind kind, const std::string& name) {
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

void list_on(const std::shared_ptr<Listing>& listing) {
  question(listing->client, Transaction().read({.range = listing->rest, .limit = keys_at_once}), listing->deadline,
           [listing](Result<TransactionAnswer> answer) {
             if (!answer.ok()) return listing->done(answer.failure());
             StepAnswer& step = answer.value().steps.front();
             const Options& options = listing->client.options();
             const std::size_t prefix = kind_prefix(options, listing->kind).size();
             for (KeyValue& each : step.keys) {
               listing->rest.key = each.key + std::string(1, '\0');
               const auto parts = parse_key(options, listing->kind, std::string_view(each.key).substr(prefix));
               if (parts && !util::problem_with_name(parts->name))
                 listing->locks[parts->name].push_back(std::move(each));
             }
             step.more && !step.keys.empty() ? list_on(listing) : finish(*listing);
           });
}

// --- Breaking --------------------------------------------------------------------------------------------------------

// Those that were looked at, and no later ones of their names.
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
                // One of them has gone; the others still may be there.
                if (!held && count > 1) return remove(client, deadline, keys, 1, removed, done);
                remove(client, deadline, Keys(keys.begin() + static_cast<std::ptrdiff_t>(count), keys.end()), at_once,
                       removed || held, done);
              });
}

}  // namespace

void inspect(Client& client, LockKind kind, const std::string& name, Backend::Handler<LockInfo> done) {
  question(client, Transaction().read(all_of(client.options(), kind, name)), client.answer_by(),
           [&client, kind, name, done = std::move(done)](Result<TransactionAnswer> answer) {
             if (!answer.ok()) return done(answer.failure());
             done(info_of(client.options(), kind, name, answer.value().steps.front().keys));
           });
}

void list(Client& client, LockKind kind, Backend::Handler<std::vector<LockInfo>> done) {
  list_on(std::make_shared<Listing>(Listing{
      client, kind, client.answer_by(), beginning_with(kind_prefix(client.options(), kind)), {}, std::move(done)}));
}

void break_lock(Client& client, LockKind kind, const std::string& name, Backend::Handler<bool> done) {
  const TimePoint deadline = client.answer_by();
  question(client, Transaction().read(all_of(client.options(), kind, name)), deadline,
           [&client, kind, deadline, done = std::move(done)](Result<TransactionAnswer> answer) {
             if (!answer.ok()) return done(answer.failure());
             Keys keys;
             for (const auto& each : look_at(client.options(), kind, answer.value().steps.front().keys).holders) {
               keys.push_back(*each.key);
             }
             remove(client, deadline, std::move(keys), removed_at_once, false, done);
           });
}

}  // namespace dlock::etcd
