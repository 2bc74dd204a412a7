#include "tests/simulation/redis/redis_model.hpp"

#include <fnmatch.h>
#include <lua.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <variant>

#include "backends/redis/requests/scripts.hpp"

namespace dlock::redis {

namespace {

using Type = Reply::Type;
using Words = RedisModel::Words;

struct Refused {
  std::string error;
};

std::string printed(double score) {
  if (std::isinf(score)) return score < 0 ? "-inf" : "inf";
  std::array<char, 64> out{};
  (void)std::snprintf(out.data(), out.size(), "%.17g", score);
  return out.data();
}

std::int64_t integer_in(const std::string& word) {
  std::size_t end = 0;
  const std::int64_t value = std::stoll(word, &end);
  if (end != word.size()) throw Refused{"ERR value is not an integer or out of range"};
  return value;
}

}  // namespace

const Script* known_script(std::string_view text_or_sha1) {
  for (const LockKind kind : {LockKind::lock, LockKind::read_write, LockKind::election}) {
    for (const Script* script : {&acquire_script(kind), &renew_script(kind), &release_script(kind),
                                 &inspect_script(kind), &forget_script(kind)}) {
      if (text_or_sha1 == script->sha1 || text_or_sha1 == script->text) return script;
    }
  }
  return nullptr;
}

std::string bytes_of(const Reply& reply) {
  const auto line = [&](char kind, const std::string& rest) { return kind + rest + "\r\n"; };
  switch (reply.type) {
    case Type::nil:
      return line('$', "-1");
    case Type::status:
      return line('+', reply.text);
    case Type::error:
      return line('-', reply.text);
    case Type::integer:
      return line(':', std::to_string(reply.integer));
    case Type::string:
      return line('$', std::to_string(reply.text.size())) + reply.text + "\r\n";
    case Type::array:
      break;
  }
  std::string out = line('*', std::to_string(reply.elements.size()));
  for (const Reply& each : reply.elements) out += bytes_of(each);
  return out;
}

// --- Scripts ---------------------------------------------------------------------------------------------------------

// Lua raises errors by longjmp: a function that calls lua_error() has nothing to destroy.
class RedisModel::Lua {
 public:
  explicit Lua(RedisModel& model) : state_(luaL_newstate()) {
    lua_State* const lua = state_.get();
    luaL_openlibs(lua);
    lua_newtable(lua);
    for (const auto& [name, function] : {std::pair("call", &call), std::pair("pcall", &pcall)}) {
      lua_pushlightuserdata(lua, &model);
      lua_pushcclosure(lua, function, 1);
      lua_setfield(lua, -2, name);
    }
    lua_setglobal(lua, "redis");
  }

  Reply run(const std::string& script, const Words& keys, const Words& arguments) {
    lua_State* const lua = state_.get();
    auto [compiled, is_new] = compiled_.try_emplace(script);
    if (is_new) {
      if (luaL_loadbuffer(lua, script.data(), script.size(), "script") != 0) fail();
      compiled->second = luaL_ref(lua, LUA_REGISTRYINDEX);
    }
    set("KEYS", keys);
    set("ARGV", arguments);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, compiled->second);
    const bool raised = lua_pcall(lua, 0, 1, 0) != 0;
    if (raised && !lua_istable(lua, -1)) fail();
    Reply reply = take(lua, lua_gettop(lua));
    lua_settop(lua, 0);
    return reply;
  }

 private:
  struct Close {
    void operator()(lua_State* lua) const noexcept { lua_close(lua); }
  };

  // An error of the script itself, and not of a command.
  [[noreturn]] void fail() const { throw std::logic_error(lua_tostring(state_.get(), -1)); }

  void set(const char* name, const Words& words) {
    lua_State* const lua = state_.get();
    lua_newtable(lua);
    for (std::size_t i = 0; i < words.size(); ++i) {
      lua_pushlstring(lua, words[i].data(), words[i].size());
      lua_rawseti(lua, -2, static_cast<int>(i + 1));
    }
    lua_setglobal(lua, name);
  }

  static int call(lua_State* lua) {
    if (!run_command(lua)) return lua_error(lua);  // the reply: {err = ...}
    return 1;
  }
  static int pcall(lua_State* lua) {
    (void)run_command(lua);
    return 1;
  }
  // Leaves the reply on the stack. False: it is an error.
  static bool run_command(lua_State* lua) {
    auto& model = *static_cast<RedisModel*>(lua_touserdata(lua, lua_upvalueindex(1)));
    Words words;
    for (int i = 1; i <= lua_gettop(lua); ++i) {
      if (lua_type(lua, i) == LUA_TNUMBER) {
        words.push_back(printed(lua_tonumber(lua, i)));
      } else {
        std::size_t size = 0;
        const char* const word = lua_tolstring(lua, i, &size);
        if (word == nullptr) {
          push(lua, reply_of::error("ERR Lua redis lib command arguments must be strings or integers"));
          return false;
        }
        words.emplace_back(word, size);
      }
    }
    const Reply reply = model.run(words);
    push(lua, reply);
    return !reply.is(Type::error);
  }

  static void push(lua_State* lua, const Reply& reply) {
    switch (reply.type) {
      case Type::nil:
        return lua_pushboolean(lua, 0);
      case Type::integer:
        return lua_pushnumber(lua, static_cast<lua_Number>(reply.integer));
      case Type::string:
        return lua_pushlstring(lua, reply.text.data(), reply.text.size());
      case Type::status:
      case Type::error:
        lua_newtable(lua);
        lua_pushlstring(lua, reply.text.data(), reply.text.size());
        return lua_setfield(lua, -2, reply.is(Type::error) ? "err" : "ok");
      case Type::array:
        break;
    }
    lua_newtable(lua);
    for (std::size_t i = 0; i < reply.elements.size(); ++i) {
      push(lua, reply.elements[i]);
      lua_rawseti(lua, -2, static_cast<int>(i + 1));
    }
  }

  static Reply take(lua_State* lua, int index) {
    const auto text_at = [lua](int i) {
      std::size_t size = 0;
      const char* const begin = lua_tolstring(lua, i, &size);
      return std::string(begin, size);
    };
    if (lua_type(lua, index) == LUA_TNUMBER)
      return reply_of::number(static_cast<std::int64_t>(lua_tonumber(lua, index)));
    if (lua_type(lua, index) == LUA_TSTRING) return reply_of::text(text_at(index));
    if (lua_toboolean(lua, index) == 0) return {};
    if (!lua_istable(lua, index)) return reply_of::number(1);
    lua_getfield(lua, index, "err");
    if (lua_isstring(lua, -1) != 0) return reply_of::error(text_at(-1));
    lua_pop(lua, 1);
    Reply reply{.type = Type::array};
    for (int i = 1;; ++i) {
      lua_rawgeti(lua, index, i);
      const bool over = lua_isnil(lua, -1);
      if (!over) reply.elements.push_back(take(lua, lua_gettop(lua)));
      lua_settop(lua, -2);
      if (over) return reply;
    }
  }

  std::unique_ptr<lua_State, Close> state_;
  std::map<std::string, int> compiled_;
};

// --- Keys ------------------------------------------------------------------------------------------------------------

class RedisModel::Keys {
 public:
  explicit Keys(RedisModel& model) : model_(model) {}

  struct CommandType {
    Reply (*run)(Keys&, const Words&);
    bool writes = false;
    bool grows = false;  // refused where there is no memory
  };
  // nullptr: there is no such command.
  [[nodiscard]] static const CommandType* command(const std::string& name);
  [[nodiscard]] Reply run(const CommandType& type, const Words& words) {
    try {
      return type.run(*this, words);
    } catch (const Refused& refused) {
      return reply_of::error(refused.error);
    }
  }

 private:
  class SortedSet {
   public:
    [[nodiscard]] bool empty() const noexcept { return scores.empty(); }
    // The member's place, or the one that it would have.
    [[nodiscard]] std::ptrdiff_t rank(const std::string& member) const {
      const std::pair<double, std::string> place(scores.find(member)->second, member);
      return std::ranges::lower_bound(order, place) - order.begin();
    }
    bool set(const std::string& member, double score) {
      const bool is_new = erase(member) == 0;
      scores[member] = score;
      order.emplace(order.begin() + rank(member), score, member);
      return is_new;
    }
    std::size_t erase(const std::string& member) {
      const auto found = scores.find(member);
      if (found == scores.end()) return 0;
      order.erase(order.begin() + rank(member));
      scores.erase(found);
      return 1;
    }

    std::map<std::string, double> scores;
    std::vector<std::pair<double, std::string>> order;
  };
  using Hash = std::map<std::string, std::string>;
  struct Entry {
    std::variant<std::string, SortedSet, Hash> value;
    std::optional<std::int64_t> expires;  // ms
  };

  [[nodiscard]] Entry* find(const std::string& key) {
    const auto found = keys_.find(key);
    if (found == keys_.end()) return nullptr;
    if (!found->second.expires || model_.now_ms() <= *found->second.expires) return &found->second;
    keys_.erase(found);
    return nullptr;
  }
  template <class T>
  [[nodiscard]] T* find_as(const std::string& key) {
    Entry* const entry = find(key);
    if (entry == nullptr) return nullptr;
    T* const value = std::get_if<T>(&entry->value);
    if (value == nullptr) throw Refused{"WRONGTYPE Operation against a key holding the wrong kind of value"};
    return value;
  }
  template <class T>
  [[nodiscard]] T& make(const std::string& key) {
    if (T* const value = find_as<T>(key)) return *value;
    return std::get<T>(keys_.insert_or_assign(key, Entry{T{}, std::nullopt}).first->second.value);
  }
  template <class T>
  [[nodiscard]] Reply erase(const Words& words) {
    T* const value = find_as<T>(words.at(1));
    if (value == nullptr) return reply_of::number(0);
    std::size_t erased = 0;
    for (std::size_t i = 2; i < words.size(); ++i) erased += value->erase(words[i]);
    if (value->empty()) keys_.erase(words[1]);
    return reply_of::number(erased);
  }

  [[nodiscard]] Reply set(const Words& words) {
    std::optional<std::int64_t> expires;
    for (std::size_t i = 3; i + 1 < words.size(); i += 2) {
      const std::int64_t time = integer_in(words[i + 1]);
      if (time <= 0) return reply_of::error("ERR invalid expire time in 'set' command");
      expires = model_.now_ms() + time * (words[i] == "EX" ? 1000 : 1);
    }
    keys_.insert_or_assign(words.at(1), Entry{words.at(2), expires});
    return reply_of::ok();
  }
  [[nodiscard]] Reply expire(const Words& words, std::int64_t unit) {
    Entry* const entry = find(words.at(1));
    if (entry == nullptr) return reply_of::number(0);
    const std::int64_t ms = integer_in(words.at(2)) * unit;
    entry->expires = model_.now_ms() + ms;
    if (ms <= 0) keys_.erase(words[1]);
    return reply_of::number(1);
  }
  [[nodiscard]] Reply left(const Words& words, std::int64_t unit) {
    const Entry* const entry = find(words.at(1));
    if (entry == nullptr) return reply_of::number(-2);
    if (!entry->expires) return reply_of::number(-1);
    return reply_of::number((*entry->expires - model_.now_ms() + unit / 2) / unit);
  }
  [[nodiscard]] Reply zrange(const Words& words) {
    Reply reply{.type = Type::array};
    const auto* const set = find_as<SortedSet>(words.at(1));
    if (set == nullptr) return reply;
    const auto size = static_cast<std::int64_t>(set->order.size());
    const auto place = [size](const std::string& word) {
      const std::int64_t at = integer_in(word);
      return at < 0 ? at + size : at;
    };
    const std::int64_t last = std::min(place(words.at(3)), size - 1);
    for (std::int64_t i = std::max<std::int64_t>(place(words.at(2)), 0); i <= last; ++i) {
      const auto& [score, member] = set->order[static_cast<std::size_t>(i)];
      reply.elements.push_back(reply_of::text(member));
      if (words.size() > 4) reply.elements.push_back(reply_of::text(printed(score)));
    }
    return reply;
  }
  [[nodiscard]] Reply time() const {
    constexpr std::int64_t second = 1'000'000;
    const std::int64_t us = model_.clock_().count();
    return {.type = Type::array,
            .elements = {reply_of::text(std::to_string(us / second)), reply_of::text(std::to_string(us % second))}};
  }
  [[nodiscard]] Reply publish(const Words& words) const {
    if (!model_.may_publish)
      return reply_of::error("NOPERM this user has no permissions to access one of the channels");
    return reply_of::number(model_.publish ? model_.publish(words.at(1), words.at(2)) : 0);
  }
  // Three keys a call, so that few keys take several.
  [[nodiscard]] Reply scan(const Words& words) {
    Reply found{.type = Type::array};
    const auto from = static_cast<std::size_t>(integer_in(words.at(1)));
    auto key = from == 0 ? keys_.begin() : keys_.upper_bound(cursors_.at(from - 1));
    for (int i = 0; i < 3 && key != keys_.end(); ++i, ++key) {
      if (fnmatch(words.at(3).c_str(), key->first.c_str(), 0) == 0) {
        found.elements.push_back(reply_of::text(key->first));
      }
      cursors_.resize(std::max(cursors_.size(), from + 1));
      cursors_[from] = key->first;
    }
    const std::string next = key == keys_.end() ? "0" : std::to_string(from + 1);
    return {.type = Type::array, .elements = {reply_of::text(next), std::move(found)}};
  }
  [[nodiscard]] Reply configure(const Words& words) {
    if (words.at(1) == "RESETSTAT") model_.calls.clear();
    if (words[1] == "SET") {
      const Refuses kind = words.at(2) == "maxmemory" ? Refuses::out_of_memory : Refuses::without_replicas;
      model_.refuses = words.at(3) == "0" ? Refuses::nothing : kind;
    }
    return reply_of::ok();
  }

  RedisModel& model_;
  std::map<std::string, Entry> keys_;
  std::vector<std::string> cursors_;  // of SCAN: the last key of each page
};

// NOLINTNEXTLINE(readability-function-size): a table
const RedisModel::Keys::CommandType* RedisModel::Keys::command(const std::string& name) {
  static const std::map<std::string, CommandType> all = {
      {"CONFIG", {[](Keys& k, const Words& w) { return k.configure(w); }}},
      {"DEL",
       {[](Keys& k, const Words& w) {
          return reply_of::number(std::count_if(w.begin() + 1, w.end(), [&k](const std::string& key) {
            const bool there = k.find(key) != nullptr;
            k.keys_.erase(key);
            return there;
          }));
        },
        true}},
      {"EVAL", {[](Keys& k, const Words& w) { return k.model_.run_script(w); }}},
      {"EVALSHA", {[](Keys& k, const Words& w) { return k.model_.run_script(w); }}},
      {"EXISTS", {[](Keys& k, const Words& w) {
         return reply_of::number(
             std::count_if(w.begin() + 1, w.end(), [&k](const auto& key) { return k.find(key) != nullptr; }));
       }}},
      {"EXPIRE", {[](Keys& k, const Words& w) { return k.expire(w, 1000); }, true}},
      {"FLUSHALL", {[](Keys& k, const Words&) { return k.keys_.clear(), reply_of::ok(); }, true}},
      {"GET", {[](Keys& k, const Words& w) {
         const auto* const value = k.find_as<std::string>(w.at(1));
         return value == nullptr ? Reply{} : reply_of::text(*value);
       }}},
      {"HDEL", {[](Keys& k, const Words& w) { return k.erase<Hash>(w); }, true}},
      {"HGET", {[](Keys& k, const Words& w) {
         const auto* const hash = k.find_as<Hash>(w.at(1));
         return hash == nullptr || !hash->contains(w.at(2)) ? Reply{} : reply_of::text(hash->at(w[2]));
       }}},
      {"HLEN", {[](Keys& k, const Words& w) {
         const auto* const hash = k.find_as<Hash>(w.at(1));
         return reply_of::number(hash == nullptr ? 0 : hash->size());
       }}},
      {"HSET",
       {[](Keys& k, const Words& w) {
          auto& hash = k.make<Hash>(w.at(1));
          const std::size_t before = hash.size();
          for (std::size_t i = 2; i + 1 < w.size(); i += 2) hash.insert_or_assign(w[i], w[i + 1]);
          return reply_of::number(hash.size() - before);
        },
        true, true}},
      {"KEYS", {[](Keys& k, const Words&) {
         Reply reply{.type = Type::array};
         for (const auto& [key, entry] : k.keys_) reply.elements.push_back(reply_of::text(key));
         return reply;
       }}},
      {"PERSIST",
       {[](Keys& k, const Words& w) {
          if (Entry* const entry = k.find(w.at(1))) entry->expires.reset();
          return reply_of::number(1);
        },
        true}},
      {"PEXPIRE", {[](Keys& k, const Words& w) { return k.expire(w, 1); }, true}},
      {"PTTL", {[](Keys& k, const Words& w) { return k.left(w, 1); }}},
      {"PUBLISH", {[](Keys& k, const Words& w) { return k.publish(w); }}},
      {"SCAN", {[](Keys& k, const Words& w) { return k.scan(w); }}},
      {"SCRIPT", {[](Keys& k, const Words& w) { return k.model_.run_script(w); }}},
      {"SET", {[](Keys& k, const Words& w) { return k.set(w); }, true, true}},
      {"SPUBLISH", {[](Keys& k, const Words& w) { return k.publish(w); }}},
      {"TIME", {[](Keys& k, const Words&) { return k.time(); }}},
      {"TTL", {[](Keys& k, const Words& w) { return k.left(w, 1000); }}},
      {"TYPE", {[](Keys& k, const Words& w) {
         constexpr std::array names = {"string", "zset", "hash"};
         const Entry* const entry = k.find(w.at(1));
         return Reply{.type = Type::status, .text = entry == nullptr ? "none" : names.at(entry->value.index())};
       }}},
      {"ZADD",
       {[](Keys& k, const Words& w) {
          auto& set = k.make<SortedSet>(w.at(1));
          int added = 0;
          for (std::size_t i = 2; i + 1 < w.size(); i += 2) {
            added += set.set(w[i + 1], std::strtod(w[i].c_str(), nullptr)) ? 1 : 0;
          }
          return reply_of::number(added);
        },
        true, true}},
      {"ZCARD", {[](Keys& k, const Words& w) {
         const auto* const set = k.find_as<SortedSet>(w.at(1));
         return reply_of::number(set == nullptr ? 0 : set->scores.size());
       }}},
      {"ZINCRBY",
       {[](Keys& k, const Words& w) {
          auto& set = k.make<SortedSet>(w.at(1));
          const auto found = set.scores.find(w.at(3));
          const double before = found == set.scores.end() ? 0 : found->second;
          const double score = before + std::strtod(w.at(2).c_str(), nullptr);
          (void)set.set(w[3], score);
          return reply_of::text(printed(score));
        },
        true, true}},
      {"ZRANGE", {[](Keys& k, const Words& w) { return k.zrange(w); }}},
      {"ZRANK", {[](Keys& k, const Words& w) {
         const auto* const set = k.find_as<SortedSet>(w.at(1));
         return set == nullptr || !set->scores.contains(w.at(2)) ? Reply{} : reply_of::number(set->rank(w[2]));
       }}},
      {"ZREM", {[](Keys& k, const Words& w) { return k.erase<SortedSet>(w); }, true}},
      {"ZSCORE", {[](Keys& k, const Words& w) {
         const auto* const set = k.find_as<SortedSet>(w.at(1));
         const bool there = set != nullptr && set->scores.contains(w.at(2));
         return there ? reply_of::text(printed(set->scores.at(w[2]))) : Reply{};
       }}},
  };
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

// --- Commands --------------------------------------------------------------------------------------------------------

RedisModel::RedisModel(std::function<std::chrono::microseconds()> clock)
    : clock_(std::move(clock)), keys_(std::make_unique<Keys>(*this)), lua_(std::make_unique<Lua>(*this)) {}
RedisModel::~RedisModel() = default;

Reply RedisModel::run_script(const Words& words) {
  const Script* const known = known_script(words.at(1));
  if (words[0] == "EVALSHA" && (known == nullptr || !loaded_.contains(known->sha1))) {
    return reply_of::error("NOSCRIPT No matching script. Please use EVAL.");
  }
  if (words[0] == "SCRIPT") {
    if (words[1] == "FLUSH") loaded_.clear();
    return reply_of::ok();
  }
  if (known != nullptr) loaded_.emplace(known->sha1);
  const auto keys = words.begin() + 3;
  const auto arguments = keys + integer_in(words.at(2));
  in_script_ = true;
  wrote_ = false;
  Reply reply =
      lua_->run(known != nullptr ? std::string(known->text) : words[1], {keys, arguments}, {arguments, words.end()});
  in_script_ = false;
  return reply;
}

Reply RedisModel::run(const Words& words) {
  const Keys::CommandType* const type = Keys::command(words.at(0));
  if (type == nullptr) return reply_of::error("ERR unknown command '" + words[0] + "', with args beginning with: ");
  ++calls[words[0]];
  if (type->writes && refuses == Refuses::read_only) {
    return reply_of::error("READONLY You can't write against a read only replica.");
  }
  if (type->writes && refuses == Refuses::without_replicas) {
    return reply_of::error("NOREPLICAS Not enough good replicas to write.");
  }
  if (type->grows && refuses == Refuses::out_of_memory && !(in_script_ && wrote_)) {
    return reply_of::error("OOM command not allowed when used memory > 'maxmemory'.");
  }
  wrote_ = wrote_ || type->writes;
  return keys_->run(*type, words);
}

}  // namespace dlock::redis
