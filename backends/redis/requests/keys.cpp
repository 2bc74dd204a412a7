#include "backends/redis/requests/keys.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/common/kinds.hpp"
#include "backends/redis/hash_slot.hpp"
#include "util/number.hpp"
#include "util/percent.hpp"

namespace dlock::redis {

namespace {

// The derived keys of K are "{K}:dlq" and so on, which hash as K does, unless K has a '}': then they hash only the part
// before it, but K hashes all of K. If K has a hash tag, that must stay the first one: K, a unit separator and "dlq".
// No lock's name has a control character, so the two forms cannot be mistaken for each other or, with a prefix, for a
// lock.
constexpr std::string_view closing = "}:";
constexpr char separator = '\x1f';
constexpr std::string_view queue_suffix = "dlq";
constexpr std::string_view alive_suffix = "dla";
constexpr std::string_view fence_suffix = "dlf";
constexpr std::array suffixes = {queue_suffix, alive_suffix, fence_suffix};

// Of '%', '{' and '}'. A name that contains one of these is encoded, so that no two names have the same key.
constexpr std::array<std::string_view, 3> encodings = {"%25", "%7B", "%7D"};

// What comes before and after the lock's key.
struct Affixes {
  std::string_view before;
  std::string_view after;
};

Affixes affixes_in(std::string_view key) {
  return has_hash_tag(key) ? Affixes{"", {&separator, 1}} : Affixes{"{", closing};
}

std::string derived(std::string_view key, std::string_view suffix) {
  const auto [before, after] = affixes_in(key);
  std::string out;
  out.reserve(before.size() + key.size() + after.size() + suffix.size());
  out += before;
  out += key;
  out += after;
  out += suffix;
  return out;
}

std::string_view suffix_of(Key key) {
  switch (key) {
    case Key::lock:
      break;
    case Key::queue:
      return queue_suffix;
    case Key::alive:
      return alive_suffix;
    case Key::fence:
      return fence_suffix;
  }
  return {};
}

// The key that this one was derived from.
std::optional<std::string> base_of(std::string_view key, std::string_view suffix) {
  if (!key.ends_with(suffix)) return std::nullopt;
  key.remove_suffix(suffix.size());
  if (key.ends_with(separator)) {
    key.remove_suffix(1);
    if (has_hash_tag(key)) return std::string(key);
  } else if (key.starts_with('{') && key.ends_with(closing) && key.size() > closing.size()) {
    key = key.substr(1, key.size() - 1 - closing.size());
    if (!key.empty() && !has_hash_tag(key)) return std::string(key);
  }
  return std::nullopt;
}

}  // namespace

bool has_hash_tag(std::string_view key) noexcept {
  return hashed_part(key).size() < key.size();
}

std::string lock_key(std::string_view prefix, std::string_view name, LockKind kind) {
  return common::kind_prefix(prefix, kind, name);
}

namespace {

bool looks_encoded(std::string_view name) {
  return std::any_of(encodings.begin(), encodings.end(),
                     [&](std::string_view each) { return name.find(each) != std::string_view::npos; });
}

}  // namespace

std::string lock_key(const Options& options, std::string_view name, LockKind kind) {
  std::string key = lock_key(options.prefix, name, kind);
  if (!options.cluster) return key;
  const bool usable = has_usable_braces(key);
  if (usable && !looks_encoded(name)) return key;
  return lock_key(options.prefix,
                  usable ? util::percent_encode(name, [](unsigned char c) { return c != '%'; })
                         : util::percent_encode(name, [](unsigned char c) { return c != '%' && c != '{' && c != '}'; }),
                  kind);
}

std::string name_in(const Options& options, std::string_view behind_prefix) {
  std::string plain(behind_prefix);
  if (!options.cluster || !looks_encoded(plain)) return plain;
  return util::percent_decode(plain).value_or(plain);
}

Command with_keys(std::string_view lock_key, std::initializer_list<Key> keys) {
  constexpr std::size_t usual_size = 400;  // of all words of a script
  const auto [before, after] = affixes_in(lock_key);
  Command words;
  words.reserve(usual_size);
  words.add(std::to_string(keys.size()));
  for (const Key key : keys) {
    if (key == Key::lock) {
      words.add(lock_key);
    } else {
      words.add_joined({before, lock_key, after, suffix_of(key)});
    }
  }
  return words;
}

Keys keys_of(std::string_view prefix, std::string_view name, LockKind kind) {
  std::string key = lock_key(prefix, name, kind);
  std::string queue = derived(key, queue_suffix);
  std::string alive = derived(key, alive_suffix);
  std::string fence = derived(key, fence_suffix);
  return {std::move(key), std::move(queue), std::move(alive), std::move(fence)};
}

bool is_reserved(std::string_view prefix, std::string_view name) {
  if (prefix.find_first_not_of('{') != std::string_view::npos) return false;
  const std::string key = std::string(prefix) + std::string(name);
  return std::any_of(suffixes.begin(), suffixes.end(), [&](std::string_view suffix) {
    const auto base = base_of(key, suffix);
    return base && base->size() > prefix.size() && base->starts_with(prefix);
  });
}

std::optional<std::string> lock_of_fence_key(std::string_view key) {
  return base_of(key, fence_suffix);
}

bool is_derived_key(std::string_view key) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](std::string_view suffix) { return base_of(key, suffix).has_value(); });
}

std::string escape_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("*?[]\\^-").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string value_of(std::string_view client, const OwnerId& owner) {
  const auto digits = owner.digits();
  std::string out;
  out.reserve(client.size() + 1 + digits.size());
  out += client;
  out += ':';
  out.append(digits.data(), digits.size());
  return out;
}

void add_value(Command& command, std::string_view client, const OwnerId& owner) {
  const auto digits = owner.digits();
  command.add_joined({client, ":", {digits.data(), digits.size()}});
}

bool is_value(std::string_view text) {
  const std::size_t colon = text.find(':');
  return colon != std::string_view::npos && OwnerId::parse(text.substr(0, colon)) &&
         OwnerId::parse(text.substr(colon + 1));
}

std::optional<OwnerId> owner_in(std::string_view value, std::string_view client) {
  if (value.size() <= client.size() || !value.starts_with(client) || value[client.size()] != ':') return std::nullopt;
  return OwnerId::parse(value.substr(client.size() + 1));
}

std::string client_channel(std::string_view client) {
  return std::string(channel_prefix) + std::string(client);
}

std::optional<WakeUp> wake_up_in(std::string_view text, std::string_view client) {
  const std::size_t kind = text.find(' ');
  const auto owner = owner_in(text.substr(0, kind), client);
  if (!owner) return std::nullopt;
  if (kind == std::string_view::npos) return WakeUp{*owner, std::nullopt};
  const auto ms = util::parse_number<std::uint32_t>(text.substr(kind + 1));  // leases are a day at most
  if (!ms) return std::nullopt;
  return WakeUp{*owner, std::chrono::milliseconds(*ms)};
}

namespace {

// In the slot of that lock.
std::string sharded_channel(std::string_view lock_key, std::string_view whose) {
  std::string out(channel_prefix);
  out += '{';
  out += hashed_part(lock_key);
  out += "}:";
  out += whose;
  return out;
}

}  // namespace

std::string client_channel(const Options& options, std::string_view client, std::string_view lock_key) {
  return options.cluster ? sharded_channel(lock_key, client) : client_channel(client);
}

std::string lock_channel(const Options& options, std::string_view lock_key) {
  if (options.cluster) return sharded_channel(lock_key, "lock");
  return std::string(channel_prefix) + "lock:" + std::string(lock_key);
}

std::array<std::string, 3> publish_arguments(const Options& options, std::string_view lock_key) {
  return {std::string(publish_command(options)), client_channel(options, "", lock_key),
          lock_channel(options, lock_key)};
}

}  // namespace dlock::redis
