// The choices of a URL, and the keys that follow from it.
#include "backends/etcd/options.hpp"

#include <array>
#include <limits>
#include <map>

#include "backends/etcd/locks/keys.hpp"
#include "tests/support/refusals.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

Options parse(const std::string& url, std::chrono::nanoseconds lease = 30s) {
  return parse_options({.url = Url::parse(url),
                        .holder = "host:17:my program",
                        .lease = lease,
                        .response_timeout = 2s,
                        .connect_timeout = 5s});
}

std::string described(const Options& options) {
  std::string out = options.endpoint();
  if (!options.user.empty()) out += " user=" + options.user;
  if (!options.password.empty()) out += " password=" + options.password;
  if (options.password_file) out += " password_file=" + options.password_file->path;
  out += " prefix=" + options.prefix + (options.verbatim ? " verbatim" : "");
  if (options.tls) out += " tls=" + options.tls->ca_file + ',' + options.tls->cert_file + ',' + options.tls->key_file;
  return out;
}

TEST(EtcdOptions, Url_SetsThem) {
  for (const auto& [url, options] : std::vector<std::pair<std::string, std::string>>{
           {"etcd://", "localhost:2379 prefix=dlock/"},
           {"etcd://me:s%40cret@h1:7001,h2,[::1]:7003/?prefix=locks/x:&names=verbatim",
            "h1:7001,h2:2379,[::1]:7003 user=me password=s@cret prefix=locks/x: verbatim"},
           {"etcd://me@h?password_file=/p", "h:2379 user=me password_file=/p prefix=dlock/"},
           {"etcd://h?names=escaped", "h:2379 prefix=dlock/"},
           {"etcd://h?prefix=", "h:2379 prefix="},  // the root
           {"etcds://h", "h:2379 prefix=dlock/ tls=,,"},
           {"etcds://h?tls_ca=/ca.pem&tls_cert=/c.pem&tls_key=/k.pem",
            "h:2379 prefix=dlock/ tls=/ca.pem,/c.pem,/k.pem"},
       }) {
    EXPECT_EQ(described(parse(url)), options);
  }
  const Options options = parse("etcds://h");
  EXPECT_EQ(options.tls->protocol, "h2") << "servers refuse clients that do not offer it";
  EXPECT_EQ(options.holder, "host:17:my program");
  EXPECT_EQ(options.response_timeout, 2s);
  EXPECT_EQ(options.connect_timeout, 5s);
}

TEST(EtcdOptions, SessionTtl_IsGivenOrTheLeaseInWholeSeconds) {
  for (const auto& [lease, ttl] : std::vector<std::pair<std::chrono::nanoseconds, std::chrono::seconds>>{
           {10s, 10s},
           {10001ms, 11s},
           {2s, 2s},
           {1ms, 2s},
           {300s, 300s},
           {24h, 300s},
           {std::chrono::nanoseconds::max(), 300s},
       }) {
    EXPECT_EQ(parse("etcd://h", lease).session_ttl, ttl) << lease.count();
    EXPECT_EQ(parse("etcd://h?session_ttl=7s", lease).session_ttl, 7s);
  }
  EXPECT_EQ(parse("etcd://h?session_ttl=2s").session_ttl, 2s);
  EXPECT_EQ(parse("etcd://h?session_ttl=2001ms").session_ttl, 3s) << "never less than was asked for";
  EXPECT_EQ(parse("etcd://h?session_ttl=5m").session_ttl, 300s);
}

TEST(EtcdOptions, InvalidUrl_IsRefusedWithTheReason) {
  std::string many = "etcd://h";
  for (int i = 1; i < 64; ++i) many += ",h";
  EXPECT_EQ(parse(many).hosts.size(), 64U);
  const std::string longest(256, 'x');
  EXPECT_EQ(parse("etcd://h?prefix=" + longest).prefix, longest);
  dlock::test::expect_refused(
      [](const std::string& url) { return parse(url); },
      {
          {many + ",h", "host: more than 64 in the list"},
          {"etcd://a%2Fb", "host: \"a/b\" is not a host name"},
          {"etcd://h/0", "path: \"/0\": etcd has no numbered databases; use prefix to keep locks apart"},
          {"etcd://me@h", "user: given without a password"},
          {"etcd://:hidden@h", "password: given without a user"},
          {"etcd://h?prefix=" + longest + "x", "prefix: longer than 256 bytes"},
          {"etcd://h?prefix=a%0ab", "prefix: lock name \"a\\x0ab\" has a control character at byte 1"},
          {"etcd://h?prefix=a%ff", "prefix: lock name \"a\\xff\" is not valid UTF-8 at byte 1"},
          {"etcd://h?names=raw", "URL: parameter \"names\" must be escaped or verbatim, not \"raw\""},
          {"etcd://h?session_ttl=1999ms", "session_ttl: 1999ms is outside 2s..5m"},
          {"etcd://h?session_ttl=300001ms", "session_ttl: 300001ms is outside 2s..5m"},
          {"etcd://h?session_ttl=forever", "session_ttl: forever is outside 2s..5m"},
          {"etcd://h?tls_ca=/ca.pem", "parameter \"tls_ca\" needs etcds://"},
          {"etcd://h?tls_cert=/c.pem", "parameter \"tls_cert\" needs etcds://"},
          {"etcd://h?tls_key=/k.pem", "parameter \"tls_key\" needs etcds://"},
          {"etcd://me:hidden@h?password_file=/p", "password_file: the URL has the password itself, too"},
          {"etcd://h?password_file=/p", "password_file: given without a user"},
          {"etcd://me@h?password_file=", "parameter \"password_file\" is empty, but must name a file"},
          {"etcds://h?tls_ca=", "parameter \"tls_ca\" is empty, but must name a file"},
          {"etcds://h?tls_cert=/c.pem", "tls_cert and tls_key must be given together"},
          {"etcds://h?tls_key=/k.pem", "tls_cert and tls_key must be given together"},
          {"etcd://h?strategy=queue",
           "URL: unknown parameter \"strategy\" for scheme \"etcd\"; it takes names, password_file, prefix, "
           "session_ttl, tls_ca, tls_cert, tls_key"},
      });
}

// --- Keys ---

constexpr OwnerId owner(0x0123456789abcdefULL, 0xfedcba9876543210ULL);
constexpr std::int64_t lease = 0x32698f7b3c1d5e0a;
constexpr std::array kinds = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};

const std::vector<std::string> odd_names = {
    "a",      "a/b",      "a%2Fb", "a%252Fb", "%2F",     "%",     "%25",  "/",   "//",   "a/",    "/a",
    ".",      "%2E",      "..",    ".a",      "a.",      "a.b",   "%2Ea", "0",   "read", "write", "read/",
    "a/read", ".session", ".gone", ".rw/a",   "München", "鍵/🔑", "a b",  "a:b", "8",    "a/8",   "~",
};

bool contains(const KeyRange& range, std::string_view key) {
  return range.end.empty() ? key == range.key : key >= range.key && key < range.end;
}

Options with(const std::string& prefix, bool verbatim = false) {
  Options options;
  options.prefix = prefix;
  options.verbatim = verbatim;
  return options;
}

LockRequest request_of(LockKind kind, const std::string& name, Mode mode = Mode::exclusive, std::uint32_t permits = 1) {
  return {.name = name, .owner = owner, .holder = "h:1:l", .kind = kind, .mode = mode, .permits = permits};
}

TEST(EtcdKeys, EachKind_HasTheDocumentedKeys) {
  struct Row {
    LockRequest request;
    const char* lock;
    const char* own;
    KeyRange before;
  };
  const std::vector<Row> rows = {
      {request_of(LockKind::lock, "a/42"), "dlock/a%2F42/", "dlock/a%2F42/", {"dlock/a%2F42/", "dlock/a%2F420"}},
      // A writer waits for all, a reader for writers.
      {request_of(LockKind::read_write, "a"), "dlock.rw/a/", "dlock.rw/a/write/", {"dlock.rw/a/", "dlock.rw/a0"}},
      {request_of(LockKind::read_write, "a", Mode::shared),
       "dlock.rw/a/",
       "dlock.rw/a/read/",
       {"dlock.rw/a/write/", "dlock.rw/a/write0"}},
      {request_of(LockKind::semaphore, "a", Mode::exclusive, 8),
       "dlock.sem/a/",
       "dlock.sem/a/8/",
       {"dlock.sem/a/8/", "dlock.sem/a/80"}},
      {request_of(LockKind::election, "a"), "dlock.elect/a/", "dlock.elect/a/", {"dlock.elect/a/", "dlock.elect/a0"}},
  };
  for (const Row& row : rows) {
    const Place place = place_of({}, row.request);
    EXPECT_EQ(place.lock, row.lock);
    EXPECT_EQ(place.own, row.own);
    EXPECT_EQ(place.before, row.before) << place.before.key << " " << place.before.end;
    EXPECT_EQ(place.capacity, row.request.permits);
    EXPECT_EQ(place.barred.empty(), row.request.kind != LockKind::semaphore);
    EXPECT_EQ(key_of(place, lease, 17), row.own + std::string("32698f7b3c1d5e0a.17"));
  }
  EXPECT_EQ(key_number("dlock/orders%2F42/32698f7b3c1d5e0a.17"), 17U);
  EXPECT_EQ(key_number("a.5/32698f7b3c1d5e0a.4294967295"), 4294967295U);
}

TEST(EtcdKeys, SessionsAndMarks_HaveTheDocumentedKeys) {
  EXPECT_EQ(session_key({}, lease), "dlock/.session/32698f7b3c1d5e0a");
  EXPECT_EQ(gone_key({}, lease, 17), "dlock/.gone/32698f7b3c1d5e0a/0000000000000011");
  const KeyRange since = gone_since({}, lease, 17);
  EXPECT_LE(since.key, gone_key({}, lease, 17));
  EXPECT_GT(since.key, gone_key({}, lease, 16));
  EXPECT_GT(since.end, gone_key({}, lease, std::numeric_limits<std::uint64_t>::max()));
  EXPECT_LT(since.end, gone_key({}, lease + 1, 1));
  EXPECT_EQ(session_key(with(""), 1), ".session/0000000000000001");
  EXPECT_EQ(session_key({}, -1), "dlock/.session/ffffffffffffffff");
}

TEST(EtcdKeys, NoPrefixVerbatim_IsTheLayoutOfEtcdctl) {
  const Options bare = with("", true);
  EXPECT_EQ(place_of(bare, request_of(LockKind::lock, "a/b")).own, "a/b/");
  EXPECT_EQ(place_of(bare, request_of(LockKind::election, "a")).own, "a/");
  EXPECT_EQ(place_of(with(""), request_of(LockKind::lock, "a/b")).own, "a%2Fb/");
}

TEST(EtcdKeys, Name_IsOneComponent) {
  const std::map<std::string, std::string> components = {
      {"orders", "orders"}, {"a/b", "a%2Fb"},
      {"%2F", "%252F"},     {"50%", "50%25"},
      {".", "%2E"},         {"..", "%2E."},
      {"a.b", "a.b"},       {".session", "%2Esession"},
      {"/.", "%2F."},       {"München 🔑", "München 🔑"},
  };
  for (const auto& [name, component] : components) EXPECT_EQ(encode_name(name), component);
}

// A lock whose keys were below another's would hold it up.
// Hazard: keys of `il/sub` block `il`: `/` is encoded
TEST(EtcdKeys, TwoLocks_AreNeverOneBelowTheOther) {
  for (const char* const prefix : {"dlock/", "dlock", "x:", "a/b/"}) {
    std::vector<std::string> starts = {prefix + std::string(".session/"), prefix + std::string(".gone/")};
    for (const LockKind kind : kinds) {
      for (const std::string& name : odd_names) starts.push_back(lock_prefix(with(prefix), kind, name));
    }
    for (std::size_t i = 0; i < starts.size(); ++i) {
      for (std::size_t j = 0; j < starts.size(); ++j) {
        EXPECT_TRUE(i == j || !starts[i].starts_with(starts[j])) << starts[i] << " is below " << starts[j];
      }
    }
  }
}

TEST(EtcdKeys, Key_LeadsBackToItsParts) {
  struct Way {
    LockKind kind;
    Mode mode;
    std::uint32_t permits;
  };
  for (const auto& [kind, mode, permits] : {Way{LockKind::lock, Mode::exclusive, 1},
                                            {LockKind::read_write, Mode::exclusive, 1},
                                            {LockKind::read_write, Mode::shared, 1},
                                            {LockKind::semaphore, Mode::exclusive, 1},
                                            {LockKind::semaphore, Mode::exclusive, 80},
                                            {LockKind::semaphore, Mode::exclusive, 4294967295},
                                            {LockKind::election, Mode::exclusive, 1}}) {
    for (const bool verbatim : {false, true}) {
      for (const std::string& name : odd_names) {
        if (verbatim && name.starts_with('.')) continue;  // dlock's own, and refused as a name
        const Options options = with("app/", verbatim);
        const Place place = place_of(options, request_of(kind, name, mode, permits));
        const std::string key = key_of(place, lease, 0);
        const std::string prefix = kind_prefix(options, kind);
        ASSERT_TRUE(key.starts_with(prefix));
        const auto parts = parse_key(options, kind, std::string_view(key).substr(prefix.size()));
        ASSERT_TRUE(parts) << key;
        EXPECT_EQ(parts->name, name);
        EXPECT_EQ(parts->mode, mode);
        EXPECT_EQ(parts->permits, permits);
      }
    }
  }
}

TEST(EtcdKeys, KeyOfNoLock_IsRefused) {
  const auto of_etcdctl = parse_key({}, LockKind::lock, "name/32698f7b3c1d5e0a");
  ASSERT_TRUE(of_etcdctl);
  EXPECT_EQ(of_etcdctl->name, "name");
  const std::map<LockKind, std::vector<std::string>> refused = {
      {LockKind::lock,
       {"", "/", "name", "name/", "/x", "//x", "a/b/x", "a%2fb/x", "%41/x", "a%/x", "a%2/x", "%zz/x", ".session/x",
        ".gone/x", "..a/x", "a%2Eb/x"}},
      {LockKind::election, {"", "name", "name/", "/x", "a/b/x", ".a/x"}},
      {LockKind::read_write,
       {"", "x", "/x", "name/x", "read/x", "/read/x", "name/read/", "name/read", "name/reads/x", "name/Read/x",
        "name//x", "a/b/read/x", ".a/read/x", "name/write/y/x", "name/8/x"}},
      {LockKind::semaphore,
       {"", "x", "8/x", "/8/x", "name/8/", "name/0/x", "name/08/x", "name/-1/x", "name/+1/x", "name/4294967296/x",
        "name/8x/x", "name/x8/x", "name/ 8/x", "name//x", "a/b/8/x", ".a/8/x", "name/read/x"}},
  };
  for (const auto& [kind, keys] : refused) {
    for (const std::string& key : keys) EXPECT_FALSE(parse_key({}, kind, key)) << key;
  }
  for (const auto& [kind, key] : {std::pair(LockKind::lock, "/x"),
                                  {LockKind::lock, ".session/x"},
                                  {LockKind::lock, ".gone/x"},
                                  {LockKind::read_write, "/read/x"},
                                  {LockKind::semaphore, "a/b/x"}}) {
    EXPECT_FALSE(parse_key(with("dlock/", true), kind, key)) << key;
  }
}

TEST(EtcdKeys, OtherNumberOfPermits_IsBarred) {
  const std::vector<std::uint32_t> numbers = {
      1, 2, 7, 8, 9, 10, 11, 79, 80, 81, 88, 99, 100, 800, std::numeric_limits<std::uint32_t>::max()};
  const auto of = [](std::uint32_t permits) {
    return place_of({}, request_of(LockKind::semaphore, "n", Mode::exclusive, permits));
  };
  for (const std::uint32_t mine : numbers) {
    const Place place = of(mine);
    EXPECT_EQ(place.barred.size(), 2U);
    for (const std::uint32_t others : numbers) {
      const std::string key = key_of(of(others), lease, 0);
      const int barred = contains(place.barred[0], key) + contains(place.barred[1], key);
      EXPECT_EQ(barred, mine == others ? 0 : 1) << mine << ": " << key;
      EXPECT_EQ(contains(place.before, key), mine == others) << mine << ": " << key;
    }
    const std::string elsewhere =
        key_of(place_of({}, request_of(LockKind::semaphore, "n0", Mode::exclusive, 3)), lease, 0);
    EXPECT_FALSE(contains(place.barred[0], elsewhere) || contains(place.barred[1], elsewhere));
  }
}

TEST(EtcdKeys, Key_NamesItsSession) {
  for (const std::int64_t each : {lease, std::int64_t{1}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    const std::string key = key_of(place_of({}, request_of(LockKind::lock, "a")), each, 0);
    EXPECT_TRUE(is_of_lease(key, each)) << key;
    EXPECT_FALSE(is_of_lease(key, 2)) << key;
    EXPECT_FALSE(is_of_lease(key, each ^ 0x10)) << key;
  }
  EXPECT_FALSE(is_of_lease("dlock/a/32698f7b3c1d5e0a", lease)) << "one of etcdctl's";
  EXPECT_FALSE(is_of_lease("dlock/32698f7b3c1d5e0a.x/y", lease)) << "a name";
  EXPECT_FALSE(is_of_lease("dlock/a/32698f7b3c1d5e0a0.x", lease));
  EXPECT_FALSE(is_of_lease("dlock/a/", lease));
  EXPECT_FALSE(is_of_lease("", lease));
}

}  // namespace
}  // namespace dlock::etcd
